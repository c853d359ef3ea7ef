"""Agents of one namespace, a thread each:  netns_agents.py FOLDER ROUNDS NUMBER...

Each exchanges models until it has done so many rounds or FOLDER/stop is there, and writes a line per round to FOLDER/rounds-NUMBER:
round, 1 if models were combined, neighbours whose models were used.
"""
import os, sys, threading, time

import numpy as np

import reef


def run(folder, rounds, number):
    coordinator = open(f"{folder}/coordinator").read().strip()
    done = 0
    with open(f"{folder}/rounds-{number}", "w", buffering=1) as lines, \
            reef.Agent(f"{folder}/run.yaml", key=f"{folder}/a{number}.key", coordinator=coordinator) as agent:
        model = np.full(int(os.environ["REEF_COUNT"]), float(number), np.float32)
        model = agent.join(model)
        while done < rounds and not os.path.exists(f"{folder}/stop"):
            model, report = agent.exchange(model)
            done += report.combined
            print(report.round, int(report.combined), len(report.present) + len(report.stale), file=lines)
            time.sleep(0.05)
        print("done", file=lines)


threads = [threading.Thread(target=run, args=(sys.argv[1], int(sys.argv[2]), int(n))) for n in sys.argv[3:]]
for one in threads:
    one.start()
for one in threads:
    one.join()
