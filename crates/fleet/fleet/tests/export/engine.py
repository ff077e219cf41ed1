"""Answers queries about what `luc fleet export` wrote, by DuckDB or by Spark with four executors.

usage: engine.py duckdb|spark DIR [--kill]    queries on standard input, a JSON array; answers, a line of JSON each
"""

import json
import os
import signal
import sys
import threading
import time


def statements(path):
    """Splits a script at its semicolons; none stands within a text."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("--")]
    return [part for part in "".join(lines).split(";\n") if part.strip()]


def plain(value):
    """Makes a number that JSON keeps exact of whatever a engine calls it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return int(value)


def duckdb_session(directory):
    import duckdb

    connection = duckdb.connect()
    for statement in statements(f"{directory}/duckdb.sql"):
        connection.execute(statement)
    return lambda query: connection.execute(query).fetchall()


def spark_session(directory):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[4,1,1024]").appName("luc")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": os.path.join(os.environ["TMPDIR"], "warehouse"),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for statement in statements(f"{directory}/spark.sql"):
        spark.sql(statement)
    return lambda query: [tuple(row) for row in spark.sql(query).collect()]


def executors():
    """Process ids of this session's executors."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        own = f"LUC_ENGINE={os.environ['LUC_ENGINE']}".encode()
        if any(word.endswith(b"CoarseGrainedExecutorBackend") for word in words) and own in environment:
            found.append(int(name))
    return found


def kill_one_later(delay_s):
    """Kills an executor while a query runs."""

    def kill():
        time.sleep(delay_s)
        os.kill(executors()[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def main():
    engine, directory = sys.argv[1:3]
    os.environ.setdefault("LUC_ENGINE", str(os.getpid()))
    session = {"duckdb": duckdb_session, "spark": spark_session}[engine](directory)
    for query in json.load(sys.stdin):
        killer = kill_one_later(0.2) if "--kill" in sys.argv else None
        begin = time.monotonic()
        rows = [[plain(value) for value in row] for row in session(query)]
        seconds = time.monotonic() - begin
        if killer:
            killer.join()
        print(json.dumps({"rows": rows, "seconds": seconds}), flush=True)


main()
