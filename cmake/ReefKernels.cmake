# Instruction sets. A file of src/num/kernels with _avx2_, _avx512_ or _neon_ in its name may use that set, and only it;
# which one runs is decided at run time by dispatch.c, whose tests of the processor must cover the flags below.
# Everything else is compiled for the plain architecture, of which NEON is a part on 64-bit Arm. On other architectures
# than its own such a file is empty.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(reef_avx2_options -mavx2 -mfma)
  set(reef_avx512_options -mavx512f -mavx512dq -mavx512bw -mavx512vl)
endif()

# Sorting networks are long straight code, for which a sanitized build takes many times as long as it should. So these four checks around
# every comparator are left out (AddressSanitizer finds most of what they would; overflow, shifts, bounds, conversions stay), those of
# AddressSanitizer are calls instead of code in place, and the optimiser does less: a third of the time,
# measured on kernels_avx2_f64.c.
set(reef_kernel_options "")
if(REEF_SANITIZE)
  list(APPEND reef_kernel_options -O1)
endif()
if(REEF_SANITIZE MATCHES undefined)
  list(APPEND reef_kernel_options -fno-sanitize=null,alignment,object-size,pointer-overflow)
endif()
if(REEF_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  list(APPEND reef_kernel_options --param=asan-instrumentation-with-call-threshold=0)
elseif(REEF_SANITIZE MATCHES address)
  list(APPEND reef_kernel_options -mllvm -asan-instrumentation-with-call-threshold=0)
endif()

foreach(set portable avx2 avx512 neon)
  set(sources ${reef_sources})
  list(FILTER sources INCLUDE REGEX "/kernels/[^/]*_${set}_[^/]*\\.c$")
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS
                                         "${reef_${set}_options};${reef_kernel_options}")
endforeach()

# float16 in AVX2: F16C has a bit of its own, which halves.c asks for.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(sources ${reef_sources})
  list(FILTER sources INCLUDE REGEX "/kernels/kernels_avx2_f16\\.c$")
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -mf16c)
endif()

# AddressSanitizer's fake frames are not aligned for vectors of 64 bytes, which gcc keeps in them: loads would fault.
if(REEF_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  set(sources ${reef_sources})
  list(FILTER sources INCLUDE REGEX "/kernels/(lanes_[^/]*|[^/]*_avx512_[^/]*)\\.c$")
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS --param=asan-use-after-return=0)
endif()

# Comparisons of numbers tell the fuzzer nothing about bytes, and telling it of each took a quarter of the time of `aggregate` and two fifths
# of that of `memory`. Where bytes are read (io, experiment, spec strings) it hears of them all.
if(REEF_FUZZ)
  set(sources ${reef_sources})
  list(FILTER sources INCLUDE REGEX "src/(agg|attack|num|problem)/")
  list(FILTER sources EXCLUDE REGEX "src/agg/(spec|senders_bytes|state_bytes)\\.c$")
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize-coverage=trace-cmp)
endif()
