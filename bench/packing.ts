// Compares the number of requests that packing needs with the lower bound, for the families of weights and their
// variants, at about 10, 100 and 1,000 requests. Exits with 1 if a family takes more than 1.3 times the bound, or all
// take more than 1.06 times on average.
import { pack } from "../src/changes/plan/requests.ts";
import { columnsOf, FAMILIES, LIMITS, lowerBound, MAX_MORE, randomFrom } from "./packing-families.ts";

const SEED = 20_260_101;

const ratios: number[] = [];
console.log(`seed ${SEED}`);
console.log("family | requests | lower bound | ms");
console.log("---|---:|---:|---:");
for (const [name, family] of Object.entries(FAMILIES)) {
  for (const requests of [10, 100, 1000]) {
    const weights = family(requests, randomFrom(SEED + requests));
    const start = performance.now();
    const packed = pack(columnsOf(weights), LIMITS).length;
    const ms = performance.now() - start;
    const bound = lowerBound(weights);
    ratios.push(packed / bound);
    const verdict = packed <= Math.max(bound + 1, bound * MAX_MORE.inOne) ? "" : " TOO MANY";
    if (verdict !== "") process.exitCode = 1;
    console.log(`${name} | ${packed} | ${bound} | ${ms.toFixed(0)}${verdict}`);
  }
}
const average = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
console.log(`on average: ${average.toFixed(3)} (at most ${MAX_MORE.onAverage})`);
if (average > MAX_MORE.onAverage) process.exitCode = 1;
