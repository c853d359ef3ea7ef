/* Everything with a name (rules, attacks, graphs, ...): families of kinds, those of the library first, then those added to a context.
 *
 * Every kind, whatever its family, begins with a reef_kind: `&rule->kind` is passed in, and what is returned can be cast to the struct of its
 * family. What is added to a context can be named wherever that context is used: in rule strings, experiment files, `reef list`, Python.
 */
#ifndef REEF_REGISTRY_H
#define REEF_REGISTRY_H

#include <reef/context.h>
#include <reef/field.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers never change their meaning; new ones are added at the end. Kinds of the first three families can be added. */
typedef enum reef_family {
    REEF_FAMILY_RULE = 0,    /* reef_rule: aggregation rules and pre-aggregators */
    REEF_FAMILY_ATTACK = 1,  /* reef_attack_kind */
    REEF_FAMILY_PROBLEM = 2, /* reef_problem_kind */
    REEF_FAMILY_GRAPH = 3,
    REEF_FAMILY_WEIGHTS = 4,
    REEF_FAMILY_LINKS = 5,
    REEF_FAMILY_STRATEGY = 6,
    REEF_FAMILY_SOURCE = 7,    /* of data */
    REEF_FAMILY_PARTITION = 8, /* of data over agents */
    REEF_FAMILY_PLACEMENT = 9, /* of malicious agents */
} reef_family;
enum { REEF_FAMILIES = 10 };

/* "rule", "attack", "problem", "graph", "weights", "links", "strategy", "source", "partition", "placement"; NULL: no such family. */
REEF_API const char *reef_family_name(reef_family family);

/* The number of kinds in a family. Here and below, context NULL means only the library's own; the result is 0 or NULL if an index is out of range,
 * a name is unknown or there is no such family. */
REEF_API ptrdiff_t reef_kind_count(const reef_context *context, reef_family family);
/* Kind number `index` of a family. */
REEF_API const reef_kind *reef_kind_at(const reef_context *context, reef_family family, ptrdiff_t index);
/* The kind of that name. */
REEF_API const reef_kind *reef_kind_find(const reef_context *context, reef_family family, const char *name);
/* The fields that this kind takes besides its own; *count of them, NULL if 0. */
REEF_API const reef_field *reef_kind_common(reef_family family, const reef_kind *kind, ptrdiff_t *count);

/* Adds a kind to a context: a rule, an attack or a problem. The struct and all it points to must live as long as the context. A name that
 * the family already has is refused. Must not be called while others use the context. */
REEF_API REEF_MUST_CHECK reef_status reef_kind_register(reef_context *context, reef_family family,
                                                        const reef_kind *kind, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
