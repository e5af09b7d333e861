/** Balancing policy `cookie`: a client stays with the upstream that it got first. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Exchange } from '../../../exchange/exchange.ts';
import { isToken } from '../../../exchange/field-syntax.ts';
import type { Balancer, BalanceSettings } from './balancer.ts';
import { FALLBACK, fallbackSubdirective } from './fallback.ts';

/** Signatures that are kept; addresses that placeholders or lookups make could be without end. */
const MOST_SIGNATURES = 4096;

/** The upstream that a cookie names. */
export const cookie: Balancer = {
	id: 'cookie',
	usage: 'lb_policy cookie [<name> [<secret>]] [{ fallback <policy>; max_age <duration> }]',
	summary: 'Keeps a client with its first upstream, by a cookie.',
	documentation: [
		'The first upstream is chosen by `fallback` (`random` if left out), and a cookie is set whose value is an HMAC-SHA256',
		'of its address with the secret: nobody who does not know the secret can choose an upstream, nor learn its',
		'address. Without a secret it is only a hash, which tells guessed addresses apart. The name is `lb` if left out. The',
		'cookie has `Path=/`, `HttpOnly` and `SameSite=Lax`; when the client came over TLS (to this server or to a trusted',
		'proxy) `Secure` and `SameSite=None`. It lasts for the session, or `max_age`. When its upstream is unavailable another',
		'is chosen and the cookie replaced.',
	].join('\n'),
	lower: (args, line, cx, other) => {
		const settings: { name?: string; secret?: string; max_age?: number; fallback?: BalanceSettings } = {};
		cx.count(line, args, 0, 2, 'lb_policy cookie [<name> [<secret>]]');
		if (args[0]) {
			if (isToken(args[0].text)) settings.name = args[0].text;
			else
				cx.problem('error', 'cookie/invalid-name', args[0].span, `\`${args[0].text}\` cannot be the name of a cookie.`);
		}
		if (args[1]) {
			settings.secret = args[1].text;
			const variable = /\{env\.([^{}]+)\}/.exec(args[1].text);
			if (variable) {
				// Taken literally it would be a secret that everybody knows.
				const message = 'Placeholders in the secret are not resolved: it would be this text.';
				const severity = cx.dialect === 'configfile' ? 'error' : 'warning';
				cx.problem(severity, 'cookie/secret-placeholder', args[1].span, message, {
					hint: `Write \`{$${variable[1]}}\`, which is read from the environment when the file is loaded.`,
				});
			}
		}
		cx.subdirectives(
			line.block,
			{
				fallback: fallbackSubdirective(settings, cx, other),
				max_age: (words, at) => {
					if (!cx.count(at, words, 1, 1, 'max_age <duration>')) return;
					const age = cx.duration(words[0]!);
					if (age === undefined) return;
					if (age >= 1000) settings.max_age = age;
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
				description: 'Name of the cookie; `lb` if left out.',
			},
			secret: { type: 'string', secret: true, description: 'Key of the HMAC.' },
			max_age: {
				type: 'number',
				minimum: 1000,
				description: 'Milliseconds that the cookie lasts; the session if left out.',
			},
			fallback: FALLBACK,
		},
	},
	compile: (settings, cx) => {
		const name = (settings.name as string | undefined) ?? 'lb';
		const secret = (settings.secret as string | undefined) ?? '';
		const maxAge = settings.max_age as number | undefined;
		const fallback = cx.choice(settings.fallback as BalanceSettings | undefined);
		const age = maxAge === undefined ? '' : `; Max-Age=${Math.floor(maxAge / 1000)}`;
		const signatures = new Map<string, string>();
		const signatureOf = (address: string): string => {
			let signature = signatures.get(address);
			if (signature === undefined) {
				signature = createHmac('sha256', secret).update(address).digest('hex');
				if (signatures.size >= MOST_SIGNATURES) signatures.clear();
				signatures.set(address, signature);
			}
			return signature;
		};
		// Texts of any length are compared by hashes of one length, under a key that nobody knows.
		const key = randomBytes(16);
		const digest = (text: string) => createHmac('sha256', key).update(text).digest();
		return (view, x) => {
			const given = cookieValue(x, name);
			if (given !== undefined && given.length === 64) {
				const wanted = digest(given);
				for (let i = 0, size = view.size; i < size; i++) {
					const signature = signatureOf(view.dial(i));
					// The digests are only made for what can be equal; how early that fails tells nothing that helps to forge.
					if (signature.charCodeAt(0) !== given.charCodeAt(0) || !view.available(i)) continue;
					if (timingSafeEqual(digest(signature), wanted)) return i;
				}
			}
			const chosen = fallback(view, x);
			if (chosen !== -1) setCookie(x, name, signatureOf(view.dial(chosen)), age, overTls(x, cx.trustsPeer));
			return chosen;
		};
	},
};

function setCookie(x: Exchange, name: string, value: string, age: string, secure: boolean): void {
	const { headers } = x.response;
	// Of a second attempt for the same exchange.
	headers.filter((field, text) => field !== 'Set-Cookie' || !text.startsWith(`${name}=`));
	const site = secure ? 'Secure; SameSite=None' : 'SameSite=Lax';
	headers.add('Set-Cookie', `${name}=${value}; Path=/${age}; HttpOnly; ${site}`);
}

function overTls(x: Exchange, trustsPeer: (x: Exchange) => boolean): boolean {
	if (x.request.scheme === 'https') return true;
	const forwarded = x.request.headers.get('x-forwarded-proto');
	return forwarded !== undefined && forwarded.toLowerCase() === 'https' && trustsPeer(x);
}

function cookieValue(x: Exchange, name: string): string | undefined {
	const { headers } = x.request;
	for (let i = 0, size = headers.size; i < size; i++) {
		if (headers.nameAt(i).toLowerCase() !== 'cookie') continue;
		for (const part of headers.valueAt(i).split(';')) {
			const equals = part.indexOf('=');
			if (equals !== -1 && part.slice(0, equals).trim() === name) return part.slice(equals + 1).trim();
		}
	}
	return undefined;
}
