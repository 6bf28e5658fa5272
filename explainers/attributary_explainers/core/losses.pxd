cpdef double cross_entropy(double p, double epsilon) noexcept
cpdef double brier(double p, double squares_of_others) noexcept
cpdef double absolute(double prediction, double target) noexcept
cpdef double squared(double prediction, double target) noexcept
cpdef double loss_of(
    double[:, ::1] P, Py_ssize_t r, int code, double epsilon, Py_ssize_t column, double target) noexcept
cpdef double slope_of(double p, int code, double epsilon, bint is_label, double target) noexcept
cpdef bint are_finite(double[:, ::1] P, Py_ssize_t start, Py_ssize_t stop) noexcept
