import { afterAll, afterEach, beforeAll } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import type { Backend } from "../../src/runs/backend/backend.ts";
import { postgresBackend } from "../../src/runs/postgres/backend.ts";
import { openDatabase } from "../../src/runs/postgres/database.ts";
import { migrate } from "../../src/runs/postgres/migrate.ts";
import { type TestPostgres, testPostgres } from "../cluster/postgres.ts";
import { backendContract } from "./backend-contract.ts";

let server: TestPostgres;
const opened: Backend[] = [];

beforeAll(async () => {
  server = await testPostgres({ fsync: "off" });
}, 60_000);

afterEach(async () => {
  await Promise.all(opened.splice(0).map((backend) => backend.close()));
});

afterAll(async () => {
  await server.stop();
});

backendContract("in PostgreSQL", async () => {
  const url = await server.database();
  const database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await database.close();
  const keep = { days: 30, runs: 500 };
  const made = [1, 2].map(() => postgresBackend({ url, connections: 5, clock: systemClock, keep }));
  opened.push(...made);
  const [one, other] = made;
  if (one === undefined || other === undefined) throw new Error("two were made");
  return [one, other];
});
