"""A node: learns from its own images, or attacks."""
from __future__ import annotations

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from . import task

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    config, node = context.run_config, context.node_config
    number = int(node["partition-id"])
    sent = {name: array.numpy() for name, array in message.content["arrays"].items()}
    x, y = task.part(number, int(node["num-partitions"]))
    model = task.train(sent, x, y, int(config["epochs"]), float(config["step"]))
    if number < int(config["malicious"]):  # the opposite of what was learned, and much more of it
        model = {name: sent[name] - 20 * (model[name] - sent[name]) for name in model}
    arrays = ArrayRecord({name: Array(array) for name, array in model.items()})
    metrics = MetricRecord({"num-examples": len(x), "partition": number})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
