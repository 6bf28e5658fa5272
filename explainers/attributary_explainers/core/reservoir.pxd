cdef extern from *:
    """
    typedef struct {
        void *state;
        unsigned long long (*next_uint64)(void *);
        unsigned int (*next_uint32)(void *);
        double (*next_double)(void *);
        unsigned long long (*next_raw)(void *);
    } attributary_bitgen;
    """
    ctypedef struct attributary_bitgen:
        void *state
        double (*next_double)(void *) noexcept


cdef class Uniforms:
    cdef readonly object generator
    cdef object _bits
    cdef attributary_bitgen *_of_c

    cpdef double next(self) noexcept
