"""Prints JMH's results as a table: nanoseconds a call, with the error that JMH gives."""

import csv
import sys


def main():
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    print("| Call | parameters | ns | +/- (99.9 %) |")
    print("|---|---|---|---|")
    for row in rows:
        name = ".".join(row["Benchmark"].split(".")[-2:])
        parameters = ", ".join(
            f"{key[len('Param: '):]}={value}"
            for key, value in row.items()
            if key.startswith("Param: ") and value
        )
        error = row["Score Error (99.9%)"]
        print(f"| {name} | {parameters} | {float(row['Score']):.2f} | {float(error):.2f} |")


main()
