/** How an address is shown to people. */

/** `127.0.0.1:8080`, `[::1]:8080`, `:8080`. */
export function addressText(address: { readonly host: string; readonly port: number }): string {
	const host = address.host.includes(':') ? `[${address.host}]` : address.host;
	return `${host}:${address.port}`;
}
