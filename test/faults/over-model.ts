import { AmbiguousError, type ApiError, BusyError, NotSentError, RejectedError } from "../../src/api/errors.ts";
import type { ManagementApi } from "../../src/api/management.ts";
import type { Operation } from "../../src/spec/routes.ts";
import { Failure, type FailureCause } from "./model/failure.ts";
import type { ModelService } from "./model/service.ts";

/** Adapts the model to the management API that the engine uses. The model itself knows nothing about the engine. */
export function managementOverModel(service: ModelService): ManagementApi {
  return {
    bulk: (operation, { json }) => translated(operation, service.bulk(operation, Buffer.from(json).toString("utf8"))),
    getTargeting: (id) => translated("getTargeting", service.getTargeting(id)),
    listOptions: (id, query) => translated("listOptions", service.listOptions(id, query)),
    getOption: (id, query) => translated("getOption", service.getOption(id, query)),
  };
}

async function translated<T>(operation: Operation, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw thrown instanceof Failure ? apiError(operation, thrown.failure) : thrown;
  }
}

function apiError(operation: Operation, cause: FailureCause): ApiError {
  switch (cause.kind) {
    case "notSent":
      return new NotSentError({ operation, reason: "connection refused" });
    case "busy":
      return new BusyError({ operation, statusCode: 409, retryAfterMs: cause.retryAfterMs });
    case "lost":
      return new AmbiguousError({ operation, ...cause });
    case "refused": {
      const { as, ...more } = cause;
      return new RejectedError({ operation, route: `ANY ${operation}`, ...more, kind: as });
    }
  }
}
