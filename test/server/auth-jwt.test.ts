import { connect } from "node:net";
import { expect, test } from "vitest";
import { IssuerUnreachable, jwtVerifier } from "../../src/server/auth-jwt.ts";
import { startIssuer } from "../support/issuer.ts";
import { startRaw } from "../support/stub-server.ts";

const AUDIENCE = "https://mcp.example.com/mcp";

/** A proxy that leads every address to one server; `asked` says what it was asked for. */
async function startProxy(to: string) {
  const asked: string[] = [];
  const url = await startRaw((socket) =>
    socket.once("data", (head) => {
      asked.push(head.toString("latin1").split("\r\n")[0] ?? "");
      const onward = connect(Number(new URL(to).port), "127.0.0.1");
      onward.on("error", () => socket.destroy());
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(onward).pipe(socket);
    }),
  );
  return { url, asked };
}

const options = { audience: AUDIENCE, projectClaim: undefined };

test("the issuer's keys are read through the proxy, once for many tokens", async () => {
  const issuer = await startIssuer();
  const proxy = await startProxy(issuer.url);
  const jwksUrl = "http://keys.example.test/keys";
  const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl, proxies: { http: proxy.url } });
  for (const sub of ["alice", "bob"]) {
    const token = await issuer.token({ aud: AUDIENCE, sub, scope: "targeting:read" });
    expect(await verifier.verify(token)).toMatchObject({ subject: sub, scopes: ["targeting:read"] });
  }
  expect(proxy.asked).toEqual(["CONNECT keys.example.test:80 HTTP/1.1"]);
});

test("the issuer's metadata is asked for through the proxy for https, and hosts of NO_PROXY without", async () => {
  const issuer = await startIssuer();
  const proxy = await startProxy(issuer.url);
  const token = await issuer.token({ aud: AUDIENCE });
  const at = { ...options, issuer: "https://login.example.test", jwksUrl: undefined };
  await expect(jwtVerifier({ ...at, proxies: { https: proxy.url } }).verify(token)).rejects.toThrow(IssuerUnreachable);
  expect(new Set(proxy.asked)).toEqual(new Set(["CONNECT login.example.test:443 HTTP/1.1"]));
  const around = { https: proxy.url, none: "login.example.test" };
  const before = proxy.asked.length;
  await expect(jwtVerifier({ ...at, proxies: around }).verify(token)).rejects.toThrow(IssuerUnreachable);
  expect(proxy.asked).toHaveLength(before);
});
