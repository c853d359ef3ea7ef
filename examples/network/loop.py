"""A training loop for `reef agent --socket PATH`, with Python's standard library only:

    reef agent run.yaml --key alice.key --socket alice.sock &
    python3 loop.py alice.sock 50 1

All agents estimate the same numbers, each from its own data: d = x . truth + noise. The third argument seeds the data; a fourth, "malicious",
sends the model shifted by 5. docs/network.md describes the bytes.
"""
import array
import json
import random
import socket
import struct
import sys

HELLO, EXCHANGE, NOTE, LEAVE = 1, 2, 3, 4


class Agent:
    """The other end of the socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        _, answer = self.ask(HELLO, bytes(32))
        self.count, kind, self.joined, self.round = struct.unpack("<QIIQ", answer[:24])
        self.type = {1: "f", 2: "d"}[kind]
        self.model = array.array(self.type, answer[24:]) if self.joined else array.array(self.type, [0] * self.count)

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the agent has gone")
            data += part
        return data

    def ask(self, op, payload=b""):
        try:
            self.socket.sendall(struct.pack("<4sIQQII", b"RLOC", op, 0, len(payload), 0, 0) + payload)
        except BrokenPipeError:
            pass  # the agent has closed the connection; its last answer says why
        magic, _, number, size, status, _ = struct.unpack("<4sIQQII", self.read(32))
        answer = self.read(size)
        if magic != b"RLOC" or status != 0:
            raise RuntimeError(answer.decode())
        return number, answer

    def exchange(self, model):
        """The combined model and the report."""
        _, answer = self.ask(EXCHANGE, array.array(self.type, model).tobytes())
        size = self.count * array.array(self.type).itemsize
        return array.array(self.type, answer[:size]), json.loads(answer[size:])

    def note(self, name, value):
        self.ask(NOTE, struct.pack("<16sd", name.encode(), value))


def main(path, rounds, seed, malicious):
    agent = Agent(path)
    draw = random.Random(seed)
    truth = [2 * m / max(agent.count - 1, 1) - 1 for m in range(agent.count)]
    model, report = agent.model, None
    for _ in range(rounds):
        for _ in range(8):  # eight steps of least mean squares on fresh data
            x = [draw.gauss(0, 1) for _ in truth]
            error = sum(a * (t - w) for a, t, w in zip(x, truth, model)) + draw.gauss(0, 0.1)
            model = [w + 0.02 * error * a for w, a in zip(model, x)]
        model, report = agent.exchange([w + 5 for w in model] if malicious else model)
    error = sum((t - w) ** 2 for t, w in zip(truth, model))
    agent.note("error", error)
    print(f"round {report['round']}: error {error:.4f}, suspects "
          + (" ".join(name for name, trust in report["trust"].items() if trust < 0.5) or "none"))
    agent.ask(LEAVE)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["malicious"])
