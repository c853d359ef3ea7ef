#!/bin/sh
# Runs a program on some ranks of this machine, for tests and benchmarks:  ranks.sh RANKS PROGRAM [ARGUMENTS...]
# MPIEXEC says which launcher (default: mpirun). Open MPI is told here, and only here, that root, more ranks than cores, and giving the
# core away while waiting are all meant.
set -eu
ranks=$1
shift
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
# One machine: no network, and no copies across processes where a container forbids them.
OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_orte_tmpdir_base=${TMPDIR:-/tmp}
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_mpi_yield_when_idle OMPI_MCA_btl OMPI_MCA_pml
export OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_orte_tmpdir_base
exec "${MPIEXEC:-mpirun}" -n "$ranks" "$@"
