/** Samples of clients for generated tests: addresses for which a `geo` or `split_clients` has its different values. */
import { murmurHash2 } from '../../modules/matchers/murmur-hash2.ts';
import { hashThreshold } from '../../modules/matchers/share.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { type GeoEntry, geoChoice, parseIpv4 } from './write-geo.ts';

/** A client, and the value that the variable has for it. */
export interface ClientSample {
	readonly address: string;
	readonly value: string;
}

/** Addresses reserved for documentation and shared networks (RFC 5737, RFC 6598), for clients that no range contains. */
const OUTSIDE = ['203.0.113.9', '198.51.100.9', '192.0.2.9', '100.64.0.9'];

/** Maximum number of samples, so that a table of a thousand networks does not become a test of a thousand requests. */
const MAX_SAMPLES = 8;

/** Number of addresses that are tried until each share of a `split_clients` has a sample. */
const TRIED_ADDRESSES = 254;

/**
 * Returns samples for a directive whose values depend only on the client's IPv4 address; none for others. Throws Untranslatable if
 * the directive cannot be translated.
 */
export function clientSamples(directive: NginxDirective): readonly ClientSample[] {
	return directive.name === 'geo'
		? geoSamples(directive)
		: directive.name === 'split_clients'
			? splitSamples(directive)
			: [];
}

function geoSamples(directive: NginxDirective): readonly ClientSample[] {
	if (directive.args.length > 1 && directive.args[0] !== '$remote_addr') return [];
	const { entries, fallback } = geoChoice(directive);
	const valueFor = (address: string): string => entries.find(entry => contains(entry, address))?.value ?? fallback;
	const inside = entries.flatMap(({ range }) => firstHostOf(range) ?? []);
	const outside = OUTSIDE.find(address => !entries.some(entry => contains(entry, address)));
	const addresses = [...new Set(inside)].slice(0, MAX_SAMPLES - 1);
	return [...addresses, ...(outside === undefined ? [] : [outside])].map(address => ({
		address,
		value: valueFor(address),
	}));
}

/** Returns the first address of an IPv4 network that a client may have; undefined for an IPv6 network. */
function firstHostOf(range: string): string | undefined {
	const [network = '', bits = '32'] = range.split('/');
	const base = parseIpv4(network);
	if (base === undefined) return undefined;
	const first = Number(bits) >= 31 ? base : base + 1;
	return [24, 16, 8, 0].map(shift => Math.floor(first / 2 ** shift) % 256).join('.');
}

function contains({ range }: GeoEntry, address: string): boolean {
	const [network = '', bits = '32'] = range.split('/');
	const [base, own] = [parseIpv4(network), parseIpv4(address)];
	if (base === undefined || own === undefined) return false;
	const size = 2 ** (32 - Number(bits));
	return Math.floor(base / size) === Math.floor(own / size);
}

/** Returns the first address of a documentation network in each share. */
function splitSamples({ args, block }: NginxDirective): readonly ClientSample[] {
	const key = args[0] ?? '';
	const parts = key.split(/\$\{remote_addr\}|\$remote_addr\b/);
	if (parts.length < 2 || parts.some(part => part.includes('$'))) return [];
	let end = 0;
	const shares = block!
		.filter(({ name }) => name !== '*')
		.map(line => {
			end += Math.round(Number.parseFloat(line.name) * 100);
			return { value: line.args[0] ?? '', below: hashThreshold(end / 100) };
		});
	const remainder = block!.find(({ name }) => name === '*')?.args[0] ?? '';
	const valueFor = (hash: number): string => shares.find(({ below }) => hash < below)?.value ?? remainder;
	const samples = new Map<string, ClientSample>();
	for (let host = 1; host <= TRIED_ADDRESSES; host++) {
		const address = `203.0.113.${host}`;
		const value = valueFor(murmurHash2(parts.join(address)));
		if (!samples.has(value)) samples.set(value, { address, value });
	}
	return [...samples.values()].slice(0, MAX_SAMPLES);
}
