/** Samples of clients for generated tests: addresses for which a `geo` or `split_clients` has its different values. */
import { murmurHash2 } from '../../modules/matchers/murmur-hash2.ts';
import { hashThreshold } from '../../modules/matchers/share.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { type GeoEntry, parseGeo, parseIpv4 } from './write-geo.ts';

/** A client, and the value that the variable has for it. */
export interface ClientSample {
	readonly address: string;
	readonly value: string;
}

/** Addresses reserved for documentation and shared networks (RFC 5737, RFC 6598), for clients that no range contains. */
const OUTSIDE_ADDRESSES = ['203.0.113.9', '198.51.100.9', '192.0.2.9', '100.64.0.9'];

/** Maximum number of samples, so that a table of a thousand networks does not become a test of a thousand requests. */
const MAX_SAMPLES = 8;

/** Maximum number of addresses that are tried to find a sample for each share of a `split_clients`. */
const TRIED_HOST_COUNT = 254;

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
	const { entries, fallback } = parseGeo(directive);
	const valueFor = (address: string): string =>
		entries.find(entry => containsAddress(entry, address))?.value ?? fallback;
	const insideAddresses = entries.flatMap(({ range }) => firstHostOf(range) ?? []);
	const outsideAddress = OUTSIDE_ADDRESSES.find(address => !entries.some(entry => containsAddress(entry, address)));
	const addresses = [...new Set(insideAddresses)].slice(0, MAX_SAMPLES - 1);
	return [...addresses, ...(outsideAddress === undefined ? [] : [outsideAddress])].map(address => ({
		address,
		value: valueFor(address),
	}));
}

/** Returns the first usable host address of an IPv4 network; undefined if the network is IPv6. */
function firstHostOf(range: string): string | undefined {
	const [network = '', prefixBits = '32'] = range.split('/');
	const networkNumber = parseIpv4(network);
	if (networkNumber === undefined) return undefined;
	const firstHost = Number(prefixBits) >= 31 ? networkNumber : networkNumber + 1;
	return [24, 16, 8, 0].map(shift => Math.floor(firstHost / 2 ** shift) % 256).join('.');
}

function containsAddress({ range }: GeoEntry, address: string): boolean {
	const [network = '', prefixBits = '32'] = range.split('/');
	const [networkNumber, addressNumber] = [parseIpv4(network), parseIpv4(address)];
	if (networkNumber === undefined || addressNumber === undefined) return false;
	const networkSize = 2 ** (32 - Number(prefixBits));
	return Math.floor(networkNumber / networkSize) === Math.floor(addressNumber / networkSize);
}

/** Returns, for each share of a `split_clients` block, the first documentation address that falls into it, and the share's value. */
function splitSamples({ args, block }: NginxDirective): readonly ClientSample[] {
	const key = args[0] ?? '';
	const keyParts = key.split(/\$\{remote_addr\}|\$remote_addr\b/);
	if (keyParts.length < 2 || keyParts.some(part => part.includes('$'))) return [];
	let endHundredths = 0;
	const shares = block!
		.filter(({ name }) => name !== '*')
		.map(line => {
			endHundredths += Math.round(Number.parseFloat(line.name) * 100);
			return { value: line.args[0] ?? '', below: hashThreshold(endHundredths / 100) };
		});
	const remainderValue = block!.find(({ name }) => name === '*')?.args[0] ?? '';
	const valueFor = (hash: number): string => shares.find(({ below }) => hash < below)?.value ?? remainderValue;
	const samples = new Map<string, ClientSample>();
	for (let host = 1; host <= TRIED_HOST_COUNT; host++) {
		const address = `203.0.113.${host}`;
		const value = valueFor(murmurHash2(keyParts.join(address)));
		if (!samples.has(value)) samples.set(value, { address, value });
	}
	return [...samples.values()].slice(0, MAX_SAMPLES);
}
