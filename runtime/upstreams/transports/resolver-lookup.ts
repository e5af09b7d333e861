/** Name resolution through configured DNS servers instead of the system's. */
import { Resolver } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';

/** Returns a `lookup` for `net.connect` that queries these servers (`host:port`) for IPv4 and IPv6 addresses. */
export function resolverLookup(servers: readonly string[], timeout: number): LookupFunction {
	const resolver = new Resolver({ timeout: timeout > 0 ? Math.min(timeout, 5000) : 5000, tries: 2 });
	resolver.setServers([...servers]);
	return (host, options, callback) => {
		const known = isIP(host);
		if (known !== 0) {
			if (options.all) callback(null, [{ address: host, family: known }]);
			else callback(null, host, known);
			return;
		}
		const addresses: { address: string; family: number }[] = [];
		let waiting = 2;
		let failure: NodeJS.ErrnoException | null = null;
		const answered = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, found: readonly string[]) => {
			if (error) failure ??= error;
			else for (const address of found) addresses.push({ address, family });
			if (--waiting > 0) return;
			const wanted = addresses.filter(one => !options.family || one.family === familyOf(options.family));
			const [first] = wanted;
			if (!first) callback(failure ?? new Error(`no address for ${host}`), '', 4);
			else if (options.all) callback(null, wanted);
			else callback(null, first.address, first.family);
		};
		resolver.resolve6(host, answered(6));
		resolver.resolve4(host, answered(4));
	};
}

function familyOf(family: number | 'IPv4' | 'IPv6'): number {
	return family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family;
}
