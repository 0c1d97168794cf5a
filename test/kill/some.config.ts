import { mergeConfig } from "vitest/config";
import every from "./vitest.config.ts";

/** `npm run test:kill:some`: processes die here and there in every kind of call, and a few stand still. */
export default mergeConfig(every, { test: { provide: { deaths: "some" } } });
