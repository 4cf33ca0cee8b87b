/* What a fit and a pool have to do at the least, in one pass: the yardstick of benchmarks/speed.py.
   Compiled for a fixed number of experts N; TILE events share a loop of logarithms. */
#include <math.h>

static double log_odds(double p, double low, double high) {
    p = p < low ? low : p;
    p = p > high ? high : p;
    return log(p / (1.0 - p));
}

/* Counts, sums and cross-products of log-odds by outcome, about an origin. */
void moments(const double *restrict q, const unsigned char *restrict y, long t, double low, double high,
             const double *restrict origin, double *restrict count, double *restrict sum, double *restrict cross) {
    double tile[TILE * N];
    static double g[N][N];
    for (int j = 0; j < N; j++)
        for (int k = 0; k < N; k++) g[j][k] = 0.0;
    for (long i = 0; i < t; i += TILE) {
        int rows = t - i < TILE ? (int)(t - i) : TILE;
        for (int j = 0; j < rows * N; j++) tile[j] = log_odds(q[i * N + j], low, high);
        for (int r = 0; r < rows; r++) {
            double *d = tile + r * N, *s = sum + y[i + r] * N;
            count[y[i + r]] += 1.0;
            for (int j = 0; j < N; j++) d[j] -= origin[j];
            for (int j = 0; j < N; j++) s[j] += d[j];
            for (int j = 0; j < N; j++)
                for (int k = 0; k < (TRIANGLE ? j + 1 : N); k++) g[j][k] += d[j] * d[k];
        }
    }
    for (int j = 0; j < N; j++)
        for (int k = 0; k < N; k++) cross[j * N + k] += TRIANGLE && k > j ? g[k][j] : g[j][k];
}

/* The pooled probability of every event. */
void pool(const double *restrict q, long t, double low, double high, const double *restrict weight, double constant,
          double *restrict answer) {
    for (long i = 0; i < t; i++) {
        double total = constant;
        for (int j = 0; j < N; j++) total += weight[j] * log_odds(q[i * N + j], low, high);
        answer[i] = 1.0 / (1.0 + exp(-total));
    }
}
