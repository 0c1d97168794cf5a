import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Certificate } from "./stub-server.ts";

/**
 * Creates a new certificate authority with OpenSSL. No program trusts it unless NODE_EXTRA_CA_CERTS names its
 * certificate, `file`.
 */
export function makeAuthority() {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-certificates-"));
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: readonly string[]): void => {
    execFileSync("openssl", [...args], { cwd: folder, stdio: "pipe" });
  };
  const ofKind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"] as const;
  openssl("req", "-x509", ...ofKind, "-days", "2", "-subj", "/CN=Authority", "-keyout", "ca.key", "-out", "ca.pem");
  let made = 0;
  return {
    file: at("ca.pem"),
    /**
     * Creates a certificate for a host, valid for `days`. If `days` is negative, the certificate has already expired.
     */
    certificateFor(host: string, days = 2): Certificate {
      made += 1;
      const [key, request, cert, names] = ["key", "csr", "pem", "names"].map((ending) => `${made}.${ending}`);
      if (key === undefined || request === undefined || cert === undefined || names === undefined) throw new Error();
      writeFileSync(at(names), `subjectAltName=DNS:${host}`);
      openssl("req", ...ofKind, "-subj", "/CN=service", "-keyout", key, "-out", request);
      const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-days", String(days), "-extfile", names];
      openssl("x509", "-req", "-in", request, ...signed, "-out", cert);
      return { key: readFileSync(at(key)), cert: readFileSync(at(cert)) };
    },
  };
}
