/** Makes a handler graph log which handlers run, for `servers { trace }`. */
import type { BuildTracer } from '../../compiler/codegen/site-compiler.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { ServerSettings } from '../../compiler/document/server-settings.ts';
import type { LogEntry } from '../logs/log-entry.ts';

/**
 * Returns a tracer for the build of a site. Returns undefined if no listener is traced, so that the graph contains no tracing
 * code.
 */
export function createStepTracer(settings: Settings, log: (entry: LogEntry) => void): BuildTracer | undefined {
	const servers = (settings.servers as readonly ServerSettings[] | undefined) ?? [];
	if (!servers.some(({ trace }) => trace === true)) return undefined;
	return {
		wrapMatcher: (_pointer, _matcher, predicate) => predicate,
		wrapHandler: (pointer, step, handler) => x => {
			if (x.logsSteps) {
				log({
					level: 'debug',
					logger: 'http.trace',
					message: `http.handlers.${step.handler}`,
					// Omits header fields and the query, which may contain secrets.
					fields: {
						place: pointer,
						site: x.siteName,
						method: x.request.method,
						host: x.request.authority,
						path: x.request.path,
					},
				});
			}
			return handler(x);
		},
	};
}
