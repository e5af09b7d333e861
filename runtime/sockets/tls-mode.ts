/**
 * Selects the implementation of TLS for accepted connections, and for those to upstreams after their handshakes: OpenSSL itself or
 * Node's objects.
 */
import { isOpensslAvailable, opensslThread } from './openssl-thread.ts';

/**
 * `openssl` calls the OpenSSL that Node contains, which needs `direct` I/O; `node` uses Node's own TLS objects. Both modes
 * support the same configurations.
 */
export type TlsMode = 'openssl' | 'node';

/** The TLS modes, spelled as in `SVC_TLS`. */
export const TLS_MODES: readonly TlsMode[] = ['openssl', 'node'];

/** Returns the mode set in the environment, or undefined if it is unset, empty or invalid. */
export function environmentTlsMode(environment: NodeJS.ProcessEnv = process.env): TlsMode | undefined {
	return TLS_MODES.find(mode => mode === environment.SVC_TLS);
}

let isOpensslWanted = environmentTlsMode() !== 'node';

/**
 * Returns the mode of new connections on this thread: `openssl`, unless the environment selects `node` or a function is missing.
 */
export function tlsMode(): TlsMode {
	return isOpensslWanted && opensslThread() !== undefined ? 'openssl' : 'node';
}

/** Returns the {@link tlsMode} of the threads of this process, without preparing this thread for TLS. */
export function expectedTlsMode(): TlsMode {
	return isOpensslWanted && isOpensslAvailable() ? 'openssl' : 'node';
}

/** Selects the implementation of TLS, for tests of both: OpenSSL itself where it is available, or Node's. */
export function useDirectTls(isEnabled: boolean): void {
	isOpensslWanted = isEnabled;
}
