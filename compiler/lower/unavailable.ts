/** Words that both languages know and this build cannot run yet: refused by name, never mistaken for a misspelling. */

/** Directives of the languages that have no module in this build. */
export const UNAVAILABLE_DIRECTIVES: ReadonlySet<string> = new Set([
	...['forward_auth', 'encode', 'php_fastcgi'],
	...['acme_server', 'tls', 'cache', 'rate_limit'],
]);

/** Request matchers of the languages that have no module in this build. */
export const UNAVAILABLE_MATCHERS: ReadonlySet<string> = new Set([]);

/** Global options of the languages that have no module in this build. */
export const UNAVAILABLE_OPTIONS: ReadonlySet<string> = new Set([
	...['persist_config', 'shutdown_delay', 'events', 'filesystem'],
	...['auto_https', 'email', 'default_sni', 'fallback_sni', 'local_certs', 'skip_install_trust', 'acme_ca'],
	...['acme_ca_root', 'acme_eab', 'acme_dns', 'dns', 'tls_resolvers', 'cert_issuer', 'key_type', 'cert_lifetime'],
	...['preferred_chains', 'on_demand_tls', 'renew_interval', 'ocsp_interval', 'ocsp_stapling', 'cache'],
	...['renewal_window_ratio', 'ech'],
]);

/** Global options inside `servers` that have no module in this build. */
export const UNAVAILABLE_SERVER_OPTIONS: ReadonlySet<string> = new Set([
	...['packet_conn_wrappers', 'strict_sni_host', 'log_credentials'],
	...['trusted_proxies_strict', 'trusted_proxies_unix', 'client_ip_headers', 'expected_underscore_headers'],
	...['expected_dot_headers', 'trace', '0rtt', 'metrics'],
]);

/** The one sentence for all of them. */
export function unavailableMessage(word: string): string {
	return `\`${word}\` is not part of this build yet.`;
}
