/* label_flip: malicious agents learn from labels y -> classes - 1 - y and send the result; otherwise they behave like all others. */
#include "attack/attack.h"

const reef_attack_kind rfi_attack_label_flip = {
    .kind = {.name = "label_flip",
             .summary = "honest, except that it learns from flipped labels",
             .citation =
                 "Fang, Cao, Jia, Gong, Local model poisoning attacks to Byzantine-robust federated learning (2020)"},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_LABELS,
};
