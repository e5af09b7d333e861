/** Load-balancing policy `cookie`: a client stays with its first upstream. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Exchange } from '../../../exchange/exchange.ts';
import { isToken } from '../../../exchange/field-syntax.ts';
import type { Balancer, BalanceSettings } from './balancer.ts';
import { FALLBACK_SCHEMA, fallbackSubdirective } from './fallback.ts';

/**
 * Maximum number of cached signatures. A maximum is needed because placeholders and lookups can produce any number of addresses.
 */
const MAX_CACHED_SIGNATURES = 4096;

export const cookie: Balancer = {
	id: 'cookie',
	usage: 'lb_policy cookie [<name> [<secret>]] [{ fallback <policy>; max_age <duration> }]',
	summary: 'Keeps a client with its first upstream, by means of a cookie.',
	documentation: [
		'The first upstream is chosen by `fallback` (default `random`), and a cookie is set whose value is an HMAC-SHA256',
		'of its address with the secret: without knowing the secret, nobody can choose an upstream or learn its',
		'address. Without a secret, it is a plain hash, which allows verifying guessed addresses. The default name is `lb`. The',
		'cookie has `Path=/`, `HttpOnly` and `SameSite=Lax`; if the client connected over TLS (to this server or to a trusted',
		'proxy), `Secure` and `SameSite=None`. It lasts for the session, or for `max_age`. If its upstream is unavailable, another',
		'one is chosen and the cookie is replaced.',
	].join('\n'),
	lower: (args, line, cx, lowerOther) => {
		const settings: { name?: string; secret?: string; max_age?: number; fallback?: BalanceSettings } = {};
		cx.count(line, args, 0, 2, 'lb_policy cookie [<name> [<secret>]]');
		if (args[0]) {
			if (isToken(args[0].text)) settings.name = args[0].text;
			else cx.problem('error', 'cookie/invalid-name', args[0].span, `\`${args[0].text}\` is not a valid cookie name.`);
		}
		if (args[1]) {
			settings.secret = args[1].text;
			const variableMatch = /\{env\.([^{}]+)\}/.exec(args[1].text);
			if (variableMatch) {
				// The placeholder's name would be the secret, and everybody could guess it.
				const message = 'Placeholders in the secret are not resolved: it would be this literal text.';
				const severity = cx.dialect === 'configfile' ? 'error' : 'warning';
				cx.problem(severity, 'cookie/secret-placeholder', args[1].span, message, {
					hint: `Write \`{$${variableMatch[1]}}\`, which is read from the environment when the file is loaded.`,
				});
			}
		}
		cx.subdirectives(
			line.block,
			{
				fallback: fallbackSubdirective(settings, cx, lowerOther),
				max_age: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'max_age <duration>')) return;
					const maxAgeMs = cx.duration(words[0]!);
					if (maxAgeMs === undefined) return;
					if (maxAgeMs >= 1000) settings.max_age = maxAgeMs;
					else
						cx.problem('error', 'value/out-of-range', words[0]!.span, 'cookie max_age must be positive.', {
							hint: 'Write a duration of a second or more.',
						});
				},
			},
			'cookie',
		);
		return settings;
	},
	schema: {
		properties: {
			name: {
				type: 'string',
				pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
				default: 'lb',
				description: 'Name of the cookie; default `lb`.',
			},
			secret: { type: 'string', secret: true, description: 'Key of the HMAC.' },
			max_age: {
				type: 'number',
				minimum: 1000,
				description: 'Lifetime of the cookie in milliseconds; default the session.',
			},
			fallback: FALLBACK_SCHEMA,
		},
	},
	compile: (settings, cx) => {
		const cookieName = (settings.name as string | undefined) ?? 'lb';
		const secret = (settings.secret as string | undefined) ?? '';
		const maxAgeMs = settings.max_age as number | undefined;
		const fallback = cx.compileChoice(settings.fallback as BalanceSettings | undefined);
		const maxAgeAttribute = maxAgeMs === undefined ? '' : `; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
		const signatureByAddress = new Map<string, string>();
		const signatureOf = (address: string): string => {
			let signature = signatureByAddress.get(address);
			if (signature === undefined) {
				signature = createHmac('sha256', secret).update(address).digest('hex');
				if (signatureByAddress.size >= MAX_CACHED_SIGNATURES) signatureByAddress.clear();
				signatureByAddress.set(address, signature);
			}
			return signature;
		};
		// Signatures are compared in constant time, by comparing digests that are made with a random key.
		const digestKey = randomBytes(16);
		const digest = (text: string) => createHmac('sha256', digestKey).update(text).digest();
		return (view, x) => {
			const sentSignature = cookieValue(x, cookieName);
			if (sentSignature !== undefined && sentSignature.length === 64) {
				const sentDigest = digest(sentSignature);
				for (let i = 0, size = view.size; i < size; i++) {
					const signature = signatureOf(view.addressOf(i));
					// Digests are computed only if the first characters are equal. The difference in time does not help anybody to forge a
					// signature.
					if (signature.charCodeAt(0) !== sentSignature.charCodeAt(0) || !view.isAvailable(i)) continue;
					if (timingSafeEqual(digest(signature), sentDigest)) return i;
				}
			}
			const chosenIndex = fallback(view, x);
			if (chosenIndex !== -1)
				setCookie(
					x,
					cookieName,
					signatureOf(view.addressOf(chosenIndex)),
					maxAgeAttribute,
					isOverTls(x, cx.trustsPeer),
				);
			return chosenIndex;
		};
	},
};

function setCookie(x: Exchange, name: string, value: string, maxAgeAttribute: string, isSecure: boolean): void {
	const { headers } = x.response;
	// An earlier attempt for the same exchange may already have set the cookie.
	headers.filter((field, text) => field !== 'Set-Cookie' || !text.startsWith(`${name}=`));
	const securityAttributes = isSecure ? 'Secure; SameSite=None' : 'SameSite=Lax';
	headers.add('Set-Cookie', `${name}=${value}; Path=/${maxAgeAttribute}; HttpOnly; ${securityAttributes}`);
}

function isOverTls(x: Exchange, trustsPeer: (x: Exchange) => boolean): boolean {
	if (x.request.scheme === 'https') return true;
	const forwardedProtocol = x.request.headers.get('x-forwarded-proto');
	return forwardedProtocol !== undefined && forwardedProtocol.toLowerCase() === 'https' && trustsPeer(x);
}

function cookieValue(x: Exchange, name: string): string | undefined {
	const { headers } = x.request;
	for (let i = 0, size = headers.size; i < size; i++) {
		if (headers.nameAt(i).toLowerCase() !== 'cookie') continue;
		for (const part of headers.valueAt(i).split(';')) {
			const equalsIndex = part.indexOf('=');
			if (equalsIndex !== -1 && part.slice(0, equalsIndex).trim() === name) return part.slice(equalsIndex + 1).trim();
		}
	}
	return undefined;
}
