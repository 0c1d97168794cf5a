// Loaded into a process with NODE_V8_COVERAGE. On a signal, writes which functions have run since the last signal.
import { takeCoverage } from "node:v8";

process.on("SIGUSR2", () => takeCoverage());
