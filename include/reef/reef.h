/* Reef: Byzantine-robust aggregation and learning. This header includes the whole public interface. */
#ifndef REEF_REEF_H
#define REEF_REEF_H

#include <reef/agg.h>
#include <reef/attack.h>
#include <reef/context.h>
#include <reef/engine.h>
#include <reef/experiment.h>
#include <reef/field.h>
#include <reef/ffi.h>
#include <reef/file.h>
#include <reef/graph.h>
#include <reef/learn.h>
#include <reef/member.h>
#include <reef/merge.h>
#include <reef/plugin.h>
#include <reef/problem.h>
#include <reef/registry.h>
#include <reef/rule.h>
#include <reef/shard.h>
#include <reef/status.h>
#include <reef/system.h>
#include <reef/version.h>

#endif
