# The server over HTTP, from the archive that `npm run release` puts into release/: docs/deployment.md says what it needs.
FROM node:24-alpine
COPY release/*.tgz /tmp/
RUN npm install --global --no-audit --no-fund /tmp/*.tgz && rm /tmp/*.tgz && mkdir /state && chown node:node /state
USER node
ENV TARGETING_MCP_STATE_DIR=/state
VOLUME /state
EXPOSE 3000
ENTRYPOINT ["targeting-mcp"]
CMD ["http", "--host", "0.0.0.0", "--port", "3000"]
