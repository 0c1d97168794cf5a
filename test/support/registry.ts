import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import packageJson from "../../package.json" with { type: "json" };
import { startStub } from "./stub-server.ts";

/** Starts a package registry that has only this package, packed by `npm pack`. Returns the registry's address. */
export async function startRegistry(archive: string): Promise<string> {
  const bytes = readFileSync(archive);
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const { name, version, bin, engines, type } = packageJson;
  const { url } = await startStub((request) => {
    if (request.url === "/archive.tgz") return (response) => response.end(bytes);
    if (request.url !== `/${name}`) return { status: 404, json: {} };
    const dist = { tarball: `http://${request.headers.host}/archive.tgz`, integrity };
    const versions = { [version]: { name, version, bin, engines, type, dist } };
    return { status: 200, json: { name, "dist-tags": { latest: version }, versions } };
  });
  return url;
}
