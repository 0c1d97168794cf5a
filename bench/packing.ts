// How many requests packing needs, beside the fewest that any packing could: the families of weights and their
// variants, at about 10, 100 and 1,000 requests. Exits 1 where it takes more than the bound + 1, or from 50 requests up
// more than 5 % above it.
import { pack } from "../src/changes/plan/requests.ts";
import { columnsOf, FAMILIES, LIMITS, lowerBound, mostRequests, randomFrom } from "./packing-families.ts";

const SEED = 20_260_101;

let wrong = 0;
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
    const verdict = packed <= mostRequests(bound) ? "" : " TOO MANY";
    if (verdict !== "") wrong += 1;
    console.log(`${name} | ${packed} | ${bound} | ${ms.toFixed(0)}${verdict}`);
  }
}
process.exitCode = wrong === 0 ? 0 : 1;
