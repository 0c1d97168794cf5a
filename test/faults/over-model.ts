import { AmbiguousError, type ApiError, BusyError, NotSentError, RejectedError } from "../../src/api/errors.ts";
import type { ManagementApi } from "../../src/api/management.ts";
import type { Operation } from "../../src/spec/routes.ts";
import { Failure, type FailureCause } from "./model/failure.ts";
import type { ModelService } from "./model/service.ts";

/**
 * The management API as the engine knows it, in front of the model, which knows nothing of the engine. `isMistaken` says
 * whether the sums of an answer are wrong, as often as it is asked.
 */
export function managementOverModel(service: ModelService, isMistaken = () => false): ManagementApi {
  return {
    bulk: async (operation, { json }, { fence, beforeReading } = {}) => {
      const answering = translated(operation, service.bulk(operation, Buffer.from(json).toString("utf8")));
      fence?.hasLeft();
      const answer = await answering;
      await beforeReading?.(answer.results.every(({ success }) => success) !== isMistaken());
      return answer;
    },
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
