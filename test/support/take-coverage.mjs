// Loaded into a process with NODE_V8_COVERAGE. On SIGUSR2, writes which functions have run since the last such signal.
import { takeCoverage } from "node:v8";

process.on("SIGUSR2", () => takeCoverage());
