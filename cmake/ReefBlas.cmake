# BLAS for the dense products of src/num/blas.c, the only file that sees it. Sets
#   reef_blas_libraries    for target_link_libraries; empty without BLAS
#   reef_blas_pc           for Libs.private of reef.pc
set(REEF_BLAS AUTO CACHE STRING "Use a BLAS with the C interface: ON, OFF, or AUTO (if there is one)")
set(reef_blas_libraries "")
set(reef_blas_pc "")

if(REEF_BLAS)
  find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
  find_library(CBLAS_LIBRARY NAMES openblas cblas)
  mark_as_advanced(CBLAS_INCLUDE_DIR CBLAS_LIBRARY)
  if(CBLAS_INCLUDE_DIR AND CBLAS_LIBRARY)
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${CBLAS_INCLUDE_DIR})
    set(CMAKE_REQUIRED_LIBRARIES ${CBLAS_LIBRARY})
    check_c_source_compiles("#include <cblas.h>
      int main(void) { float x = 1; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 1, 1, 1, 1.0f, &x, 1, &x, 1, 0.0f, &x, 1);
                       return x != 1; }" REEF_CBLAS_WORKS)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
  endif()
  if(REEF_CBLAS_WORKS)
    set_source_files_properties(src/num/blas.c PROPERTIES COMPILE_DEFINITIONS REEF_HAVE_CBLAS
                                                          INCLUDE_DIRECTORIES ${CBLAS_INCLUDE_DIR})
    # Others link it by its name: the path is this machine's.
    cmake_path(GET CBLAS_LIBRARY STEM reef_blas_name)
    string(REGEX REPLACE "^lib" "" reef_blas_name ${reef_blas_name})
    set(reef_blas_libraries $<BUILD_INTERFACE:${CBLAS_LIBRARY}> $<INSTALL_INTERFACE:${reef_blas_name}>)
    set(reef_blas_pc -l${reef_blas_name})
  elseif(NOT REEF_BLAS STREQUAL AUTO)
    message(FATAL_ERROR "REEF_BLAS=ON, but there is no working cblas.h with libopenblas or libcblas")
  endif()
endif()
