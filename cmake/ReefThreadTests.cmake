# The tests in which threads of ours run: those that ThreadSanitizer is for (scripts/gates.sh tsan). Whoever writes a test with
# threads adds it here. Of the network: agents with their threads, links on which libnats delivers, the small HTTP server. The simulated
# network (net.rounds) and the other tests of it have no threads; in net.hostile and net.strangers they run in forked children, which
# ThreadSanitizer does not support.
set(reef_thread_tests
    agg.allocation
    agg.mref
    agg.register
    agg.stream
    agg.threads
    base.walk
    catalogue.plugin
    example.streaming
    experiment.run
    experiment.stock
    ffi.ffi_kind
    ffi.ffi_learn
    kernels.bits
    kernels.pool
    learn.bits
    learn.setup
    merge.merge
    net.agent
    net.faults
    net.http
    net.link_nats
    num.blas)

# A name in the list that is no test would look like one that has passed.
function(reef_check_thread_tests)
  get_property(found GLOBAL PROPERTY reef_thread_tests_found)
  foreach(name IN LISTS reef_thread_tests)
    if((name MATCHES "^example\\." AND NOT REEF_EXAMPLES) OR (name MATCHES "^net\\." AND NOT reef_nats_found))
      continue()
    endif()
    if(NOT name IN_LIST found)
      message(FATAL_ERROR "cmake/ReefThreadTests.cmake names ${name}, and there is no such test")
    endif()
  endforeach()
endfunction()
