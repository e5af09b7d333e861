/** Protocol limits from a listener's settings. */
import type { ServerSettings } from '../../compiler/document/server-settings.ts';
import { DEFAULT_LIMITS } from '../protocols/http1/limits.ts';
import type { ProtocolLimits } from '../protocols/protocol.ts';

/** Returns a listener's protocol limits. Limits that are not set are taken from DEFAULT_LIMITS. */
export function protocolLimits(server: ServerSettings): ProtocolLimits {
	const { timeouts = {}, limits = {} } = server;
	const { expected_underscore_headers: underscore, expected_dot_headers: dot } = server;
	return {
		expectedHeaders: underscore || dot ? { underscore: underscore ?? [], dot: dot ?? [] } : undefined,
		maxHeadSize: server.max_header_size ?? DEFAULT_LIMITS.maxHeadSize,
		maxHeaderCount: limits.header_count ?? DEFAULT_LIMITS.maxHeaderCount,
		headTimeout: timeouts.read_header ?? DEFAULT_LIMITS.headTimeout,
		idleTimeout: timeouts.idle ?? DEFAULT_LIMITS.idleTimeout,
		bodyTimeout: timeouts.read_body ?? DEFAULT_LIMITS.bodyTimeout,
		bodyIdleTimeout: timeouts.read_body_idle ?? DEFAULT_LIMITS.bodyIdleTimeout,
		bodyRate: timeouts.read_body_rate ?? DEFAULT_LIMITS.bodyRate,
		writeTimeout: timeouts.write ?? DEFAULT_LIMITS.writeTimeout,
		writeIdleTimeout: timeouts.write_idle ?? DEFAULT_LIMITS.writeIdleTimeout,
		writeRate: timeouts.write_rate ?? DEFAULT_LIMITS.writeRate,
		writeChunk: timeouts.write_max_chunk ?? DEFAULT_LIMITS.writeChunk,
		maxChunkExtensions: limits.chunk_extensions ?? DEFAULT_LIMITS.maxChunkExtensions,
		maxDrain: limits.unread_body ?? DEFAULT_LIMITS.maxDrain,
		maxRequestsPerConnection: limits.requests_per_connection ?? DEFAULT_LIMITS.maxRequestsPerConnection,
	};
}
