# The server in a container, on the CPU: small, without CUDA. Dockerfile.cuda builds the image for GPUs.
#
#   docker build -t sagitta .
#   docker run --rm -p 127.0.0.1:8484:8484 -e SAGITTA_INSECURE=yes -v sagitta:/data sagitta
#   docker buildx build --platform linux/amd64,linux/arm64 -t sagitta .
#
# See docs/container.md. Every stage runs on the platform of the image, so that the kernels are compiled for it.

# Bookworm is the oldest system with this version of Node, so binaries compiled on it run on newer ones.
ARG NODE_IMAGE=node:22.23.3-bookworm-slim
# The same system without Node and npm: the archive has a Node of its own, which needs only the C++ library.
ARG RUNTIME_IMAGE=debian:12.12-slim

FROM ${NODE_IMAGE} AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/client/package.json ./packages/client/
COPY packages/console/package.json ./packages/console/
COPY packages/langchain/package.json ./packages/langchain/
# Without install scripts: one would download TensorFlow's GPU library, and ours builds the kernels, which is a step of
# its own below. Native parts of packages come prebuilt as optional packages, so --omit=optional must not be added.
RUN npm ci --engine-strict --ignore-scripts --no-audit --no-fund
COPY scripts ./scripts
COPY kernels ./kernels
# Without --if-possible, since an image without kernels is an error.
RUN node scripts/build-kernels.mjs addon files bench
# Everything that .dockerignore lets in.
COPY . .
RUN npm run build
# The files of a release archive, and an empty folder for data.
RUN node scripts/bundle/bundle.mjs --tree /image/app && mkdir /image/data

FROM ${RUNTIME_IMAGE}
WORKDIR /app
COPY --from=build /image/app ./
# A number needs no entry in /etc/passwd, and orchestrators can check that it is not root.
COPY --from=build --chown=10001:10001 /image/data /data
USER 10001:10001
VOLUME /data
ENV NODE_ENV=production \
    SAGITTA_HOST=0.0.0.0 \
    SAGITTA_PORT=8484 \
    SAGITTA_DATA_DIR=/data
EXPOSE 8484
STOPSIGNAL SIGTERM
# Ready once every collection has been loaded or has failed; the disk determines how long that takes.
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --start-interval=2s \
    CMD ["/app/runtime/node", "/app/scripts/container/healthcheck.mjs"]
# After SIGTERM, requests may finish within SAGITTA_SHUTDOWN_MS; give `docker stop` a little more time.
ENTRYPOINT ["/app/bin/sagitta"]
CMD ["serve"]
