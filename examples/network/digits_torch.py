"""Eight processes train a network to read digits, each on its own images; two of them are malicious. On this machine, with a broker:

    python3 examples/network/digits_torch.py [RULE]

On several machines the loop is the same, around `reef.Agent("run.yaml", key="alice.key")`: docs/network.md.
"""
import collections
import sys

import numpy as np
import torch

import reef
import reef.data

AGENTS, MALICIOUS = 8, {2, 5}


def play(agent, k, rounds=15):
    torch.manual_seed(0)  # everybody begins with the same model
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    images, labels, test_images, test_labels = reef.data.digits()
    mine = reef.data.split(labels, AGENTS, seed=1)[k]
    x, y = torch.from_numpy(images[mine].reshape(len(mine), -1)).float(), torch.from_numpy(labels[mine]).long()
    agent.join(model)
    suspected = collections.Counter()  # how often: who is late in a round is not suspected in it
    for _ in agent.rounds(rounds):
        for _ in range(10):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
        if k in MALICIOUS:  # the two have agreed on what to send instead
            model.load_state_dict({name: 10 * torch.randn_like(value) for name, value in model.state_dict().items()})
        model, report = agent.exchange(model)
        suspected.update(report.suspects())
    guess = model(torch.from_numpy(test_images.reshape(len(test_images), -1)).float()).argmax(1).numpy()
    return {"accuracy": float(np.mean(guess == test_labels)), "suspects": sorted(name for name, times in suspected.items() if times > rounds / 2)}


if __name__ == "__main__":
    results = reef.swarm(play, AGENTS, count=64 * 32 + 32 + 32 * 10 + 10, rule=(sys.argv[1:] or ["mref"])[0], step=0.1)
    for k, result in enumerate(results):
        print(f"agent-{k}: {'malicious' if k in MALICIOUS else 'accuracy %.3f' % result['accuracy']}, "
              f"suspects {' '.join(result['suspects']) or 'nobody'}")
