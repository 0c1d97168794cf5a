// The page of a host that uses the official package. It shows a view in a sandboxed frame, and passes the view's calls
// to `hostCalls`, which the test provides. The test bundles this file.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

/** The policy for a view that names no domains, as the specification of MCP Apps has it. */
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; connect-src 'none'";

globalThis.heights = [];

/** Shows the view of a call. Resolves when the view has the result of the call. */
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
