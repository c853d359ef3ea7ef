"""What a broker sees of a run, for the tests of sealing.

    capture.py record PORT SERVERS-PORT FOLDER   stands between agents and their broker, and writes down all bytes: one file for each connection
                                                 and direction; says "ready"
    capture.py search FOLDER PLACE...            takes the models that agents sent openly out of what was recorded in FOLDER; for each other place
                                                 (folder, searched with all below it) prints how many of their windows of 16 bytes are in it
    capture.py boxes FOLDER                      "EPOCH SENDER ROUND: HEARERS..." for each sealed inline model that was sent
"""

import os
import re
import socket
import struct
import sys
import threading

HEAD, MANIFEST, CHUNK_HEAD, WINDOW, SEAL, BOX = 256, 320, 16, 16, 16, 84
SEALED = 2


def copy(source, sink, path):
    with open(path, "wb", buffering=0) as seen:
        try:
            while data := source.recv(65536):
                seen.write(data)
                sink.sendall(data)
        except OSError:
            pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def record(port, server, folder):
    os.makedirs(folder)
    listener = socket.create_server(("127.0.0.1", port))
    print("ready", flush=True)
    number = 0
    while True:
        near, _ = listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", server))
        except OSError:
            near.close()
            continue
        number += 1
        for ends, way in (((near, far), "up"), ((far, near), "down")):
            threading.Thread(target=copy, args=(*ends, f"{folder}/{number}.{way}"), daemon=True).start()


def published(folder):
    """Subject and payload of everything that agents have published."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".up"):
            continue
        with open(f"{folder}/{name}", "rb") as file:
            data = file.read()
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            words = data[at:end].split()
            at = end + 2
            if words and words[0] == b"PUB":
                size = int(words[-1])
                yield words[1].decode(), data[at : at + size]
                at += size + 2


def models(folder):
    for subject, payload in published(folder):
        if re.match(r"reef\.[^.]+\.s\.", subject) and len(payload) > MANIFEST:
            yield payload[MANIFEST:]
        elif re.match(r"reef\.[^.]+\.p\.\d+\.\d+\.\d+$", subject):
            yield payload[CHUNK_HEAD:]


def search(folder, places):
    windows = set()
    for model in models(folder):
        windows.update(model[i : i + WINDOW] for i in range(len(model) - WINDOW + 1))
    print(len(windows), "windows")
    for place in places:
        found, size = set(), 0
        for at, _, names in os.walk(place):
            for name in names:
                with open(os.path.join(at, name), "rb") as file:
                    data = file.read()
                size += len(data)
                found.update(w for i in range(len(data) - WINDOW + 1) if (w := data[i : i + WINDOW]) in windows)
        print(place, size, "bytes", len(found), "found")


def boxes(folder):
    for subject, payload in published(folder):
        if not re.match(r"reef\.[^.]+\.s\.", subject) or len(payload) <= MANIFEST or not payload[7] & SEALED:
            continue
        epoch, sender = struct.unpack_from("<II", payload, 8)
        rounds, count = struct.unpack_from("<QQ", payload, 80)
        behind = payload[MANIFEST + count * (4 if payload[6] == 1 else 8) + SEAL :]
        assert len(behind) % BOX == 0, len(behind)
        hearers = [struct.unpack_from("<I", behind, i)[0] for i in range(0, len(behind), BOX)]
        print(f"{epoch} {sender} {rounds}:", *hearers)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1] == "search":
        search(sys.argv[2], sys.argv[3:])
    else:
        boxes(sys.argv[2])
