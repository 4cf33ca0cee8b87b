"""scikit-learn classifiers: every pool as an estimator."""
