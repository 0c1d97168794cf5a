// The page of a host, with the official package: it shows a view in a sandboxed frame, and passes the calls of the view
// on to `hostCalls`, which the test gives it. The test bundles it.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

/** What a host lets a view load that names no domains, as the specification says it. */
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; connect-src 'none'";

globalThis.heights = [];

/** Shows a view that belongs to a call, and resolves once it has the result of the call. */
globalThis.showView = async (html, theme, { input, result }) => {
  const frame = document.createElement("iframe");
  frame.title = "View";
  frame.setAttribute("sandbox", "allow-scripts allow-forms");
  document.body.append(frame);
  const view = frame.contentWindow;
  const bridge = new AppBridge(
    null,
    { name: "test-host", version: "1.0.0" },
    { serverTools: {} },
    { hostContext: { theme } },
  );
  bridge.oncalltool = ({ name, arguments: args = {} }) => globalThis.hostCalls(name, args);
  bridge.onsizechange = ({ height = 0 }) => {
    globalThis.heights.push(height);
    frame.style.height = `${height}px`;
  };
  const initialized = new Promise((resolve) => {
    bridge.oninitialized = resolve;
  });
  globalThis.changeTheme = (next) => bridge.setHostContext({ theme: next });
  globalThis.tearDown = () => bridge.teardownResource({});
  await bridge.connect(new PostMessageTransport(view, view));
  frame.srcdoc = html.replace("<head>", `<head><meta http-equiv="Content-Security-Policy" content="${POLICY}">`);
  await initialized;
  await bridge.sendToolInput({ arguments: input });
  await bridge.sendToolResult(result);
};
