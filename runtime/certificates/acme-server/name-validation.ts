/** Validates names for ACME: HTTP-01, DNS-01 (RFC 8555 §8) and TLS-ALPN-01 (RFC 8737). */
import { createHash, timingSafeEqual } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { connect } from 'node:tls';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { Certificate } from '@peculiar/asn1-x509';
import { AcmeRefusal } from './acme-refusal.ts';

/** Ports to which validations connect; 80 and 443 except in tests. */
export interface ValidationPorts {
	readonly http: number;
	readonly tls: number;
}

/** A name to validate, with the challenge that the client has chosen. */
export interface NameValidation {
	readonly type: string;
	/** The name or address; for a wildcard, the name below the asterisk. */
	readonly name: string;
	readonly token: string;
	readonly keyAuthorization: string;
	/** Addresses of name servers. If empty, the system's name servers are used. */
	readonly resolvers: readonly string[];
	readonly ports: ValidationPorts;
}

/** Timeout of each step of a validation, in milliseconds. */
const STEP_TIMEOUT_MS = 10_000;
/** Maximum number of bytes of a response that are examined. */
const MAX_ANSWER_BYTES = 2048;
const MAX_REDIRECTS = 5;
const ACME_IDENTIFIER_OID = '1.3.6.1.5.5.7.1.31';

/** Rejects with {@link AcmeRefusal} unless the challenge is answered correctly. */
export async function validateName(validation: NameValidation): Promise<void> {
	switch (validation.type) {
		case 'http-01':
			return validateHttp(validation);
		case 'dns-01':
			return validateDns(validation);
		default:
			return validateTls(validation);
	}
}

async function validateHttp(validation: NameValidation): Promise<void> {
	const { name, token, keyAuthorization, ports } = validation;
	const host = isIP(name) === 6 ? `[${name}]` : name;
	let url = new URL(`http://${host}${ports.http === 80 ? '' : `:${ports.http}`}/.well-known/acme-challenge/${token}`);
	for (let redirectCount = 0; ; redirectCount++) {
		const { status, location, body } = await fetchOnce(url, validation);
		if (status >= 300 && status < 400 && location !== undefined && redirectCount < MAX_REDIRECTS) {
			url = redirectTarget(url, location, ports);
			continue;
		}
		if (status !== 200) throw new AcmeRefusal('unauthorized', 403, `\`${url.href}\` answered with status ${status}.`);
		if (equalsInConstantTime(body.trimEnd(), keyAuthorization)) return;
		throw new AcmeRefusal('unauthorized', 403, `\`${url.href}\` did not answer with the key authorization.`);
	}
}

/**
 * Returns the target of a redirect. Throws {@link AcmeRefusal} unless its port is a web server's, so that a redirect cannot
 * reach other services on this server's network.
 */
function redirectTarget(sourceUrl: URL, location: string, ports: ValidationPorts): URL {
	const url = URL.parse(location, sourceUrl);
	const port = url && Number(url.port || (url.protocol === 'http:' ? 80 : 443));
	const isAllowed =
		url && (url.protocol === 'http:' || url.protocol === 'https:') && [80, 443, ports.http, ports.tls].includes(port!);
	if (url && isAllowed) return url;
	throw new AcmeRefusal('unauthorized', 403, 'The validation does not follow redirects to this address.');
}

function fetchOnce(
	url: URL,
	{ resolvers }: NameValidation,
): Promise<{ readonly status: number; readonly location: string | undefined; readonly body: string }> {
	return new Promise((resolve, reject) => {
		const rejectUnreachable = (error: NodeJS.ErrnoException): void =>
			reject(new AcmeRefusal('connection', 400, `\`${url.host}\` cannot be reached: ${error.code ?? error.message}.`));
		const options = {
			headers: { 'user-agent': 'svc ACME server', connection: 'close' },
			signal: AbortSignal.timeout(STEP_TIMEOUT_MS),
			lookup: createLookup(resolvers),
			agent: false as const,
			// RFC 8555 §8.3: the server that is validated may not have a valid certificate yet.
			rejectUnauthorized: false,
		};
		const request = (url.protocol === 'http:' ? getHttp : getHttps)(url, options, response => {
			const chunks: Buffer[] = [];
			let receivedBytes = 0;
			const finish = (): void => {
				resolve({
					status: response.statusCode ?? 0,
					location: response.headers.location,
					body: Buffer.concat(chunks).toString('latin1').slice(0, MAX_ANSWER_BYTES),
				});
				response.destroy();
			};
			response.on('data', (chunk: Buffer) => {
				chunks.push(chunk);
				receivedBytes += chunk.length;
				if (receivedBytes > MAX_ANSWER_BYTES) finish();
			});
			response.on('end', finish);
			response.on('error', rejectUnreachable);
		});
		request.on('error', rejectUnreachable);
	});
}

async function validateDns({ name, keyAuthorization, resolvers }: NameValidation): Promise<void> {
	const expectedDigest = createHash('sha256').update(keyAuthorization).digest('base64url');
	const recordName = `_acme-challenge.${name}`;
	let txtRecords: string[][];
	try {
		txtRecords = await createResolver(resolvers).resolveTxt(recordName);
	} catch (error) {
		throw new AcmeRefusal(
			'dns',
			400,
			`\`${recordName}\` cannot be resolved: ${(error as NodeJS.ErrnoException).code}.`,
		);
	}
	if (txtRecords.some(parts => equalsInConstantTime(parts.join(''), expectedDigest))) return;
	throw new AcmeRefusal('unauthorized', 403, `\`${recordName}\` does not contain the digest of the key authorization.`);
}

async function validateTls({ name, keyAuthorization, resolvers, ports }: NameValidation): Promise<void> {
	const peerCertificate = await fetchCertificate(name, ports.tls, resolvers);
	const { extensions } = AsnConvert.parse(peerCertificate.raw, Certificate).tbsCertificate;
	const extension = extensions?.find(({ extnID, critical }) => extnID === ACME_IDENTIFIER_OID && critical);
	const expectedDigest = createHash('sha256').update(keyAuthorization).digest();
	const presentedDigest = extension && Buffer.from(AsnConvert.parse(extension.extnValue, OctetString).buffer);
	const names = peerCertificate.names.toLowerCase();
	const isForName = names === `dns:${name}` || (isIP(name) !== 0 && /^ip address:[^,]+$/.test(names));
	if (
		isForName &&
		presentedDigest?.length === expectedDigest.length &&
		timingSafeEqual(presentedDigest, expectedDigest)
	)
		return;
	throw new AcmeRefusal('unauthorized', 403, `\`${name}\` did not present the certificate that answers the challenge.`);
}

function fetchCertificate(
	name: string,
	port: number,
	resolvers: readonly string[],
): Promise<{ readonly raw: Buffer; readonly names: string }> {
	return new Promise((resolve, reject) => {
		const socket = connect({
			host: name,
			port,
			servername: isIP(name) ? reverseName(name) : name,
			ALPNProtocols: ['acme-tls/1'],
			rejectUnauthorized: false,
			lookup: createLookup(resolvers),
		});
		socket.setTimeout(STEP_TIMEOUT_MS, () => socket.destroy(new Error('timed out')));
		socket.once('error', (error: NodeJS.ErrnoException) =>
			reject(new AcmeRefusal('tls', 400, `\`${name}\` cannot be reached: ${error.code ?? error.message}.`)),
		);
		socket.once('secureConnect', () => {
			const certificate = socket.getPeerX509Certificate();
			if (socket.alpnProtocol === 'acme-tls/1' && certificate) {
				resolve({ raw: certificate.raw, names: certificate.subjectAltName ?? '' });
			} else reject(new AcmeRefusal('tls', 400, `\`${name}\` does not speak \`acme-tls/1\`.`));
			socket.destroy();
		});
	});
}

/** Returns the server name with which to validate an address (RFC 8738 §6): its name in the reverse DNS zone. */
function reverseName(address: string): string {
	if (isIP(address) === 4) return `${address.split('.').reverse().join('.')}.in-addr.arpa`;
	const [head = '', tail = ''] = address.split('::');
	const splitGroups = (text: string): string[] => (text === '' ? [] : text.split(':'));
	const leadingGroups = splitGroups(head);
	const trailingGroups = splitGroups(tail);
	const zeros = Array<string>(8 - leadingGroups.length - trailingGroups.length).fill('0');
	const digits = [...leadingGroups, ...zeros, ...trailingGroups].map(group => group.padStart(4, '0')).join('');
	return `${[...digits].reverse().join('.')}.ip6.arpa`;
}

function createResolver(servers: readonly string[]): Resolver {
	const resolver = new Resolver({ timeout: 3000, tries: 2 });
	if (servers.length > 0) resolver.setServers(servers);
	return resolver;
}

/** Returns a lookup function that asks these name servers; undefined if there are none, so that the system's are asked. */
function createLookup(servers: readonly string[]): LookupFunction | undefined {
	if (servers.length === 0) return undefined;
	return (name, options, callback) => {
		const resolver = createResolver(servers);
		Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]).then(([v4, v6]) => {
			const addresses = [
				...(v4.status === 'fulfilled' ? v4.value.map(address => ({ address, family: 4 })) : []),
				...(v6.status === 'fulfilled' ? v6.value.map(address => ({ address, family: 6 })) : []),
			];
			const [firstAddress] = addresses;
			if (!firstAddress) callback(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }), '', 4);
			else if (options.all) callback(null, addresses);
			else callback(null, firstAddress.address, firstAddress.family);
		});
	};
}

function equalsInConstantTime(a: string, b: string): boolean {
	const [x, y] = [Buffer.from(a), Buffer.from(b)];
	return x.length === y.length && timingSafeEqual(x, y);
}
