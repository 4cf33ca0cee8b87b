"""scikit-learn: every pool as an estimator."""
