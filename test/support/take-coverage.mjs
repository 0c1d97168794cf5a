// Loaded into a process with NODE_V8_COVERAGE: a signal writes down which functions ran since the signal before.
import { takeCoverage } from "node:v8";

process.on("SIGUSR2", () => takeCoverage());
