# The server over HTTP, from the archive that `npm run release` puts into release/.
# docs/guides/run-on-several-machines.md says what it needs.
FROM node:24-alpine
COPY release/*.tgz /tmp/
RUN npm install --global --no-audit --no-fund /tmp/*.tgz && rm -rf /tmp/*.tgz /root/.npm && mkdir -m 700 /state && chown 1000:1000 /state
# The user node, by number: Kubernetes can tell only of a number that it is not root.
USER 1000:1000
ENV TARGETING_MCP_STATE_DIR=/state
VOLUME /state
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=40s CMD ["node", "-e", "fetch('http://127.0.0.1:3000/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["targeting-mcp"]
CMD ["http", "--host", "0.0.0.0", "--port", "3000"]
