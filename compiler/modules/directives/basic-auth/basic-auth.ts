/** `basic_auth`: admits requests with the name and password of an account. */

import type { Line, Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { UNMENTIONED_VALUE } from '../../contract/request-change.ts';
import { type BasicAuthAccount, type BasicAuthStep, compileBasicAuth, DEFAULT_REALM } from './basic-auth-handler.ts';
import { HASH_ALGORITHMS, type HashAlgorithm, parsePasswordHash } from './password-hash.ts';

const USAGE = 'basic_auth [matcher] [bcrypt | argon2id [<realm>]] { <user> <hash>…; htpasswd <file> }';

/** Syntax: `basic_auth [matcher] [<algorithm> [<realm>]] { <user> <hash> …; htpasswd <file> }`. */
export const basicAuth = handlerDirective<BasicAuthStep>({
	kind: 'handler',
	id: 'basic_auth',
	probeChanges: ({ accounts }) => [
		...accounts.map(({ user }) => ({
			header: ['Authorization', formatBasicCredentials(user, UNMENTIONED_VALUE)] as const,
		})),
		{ header: ['Authorization', undefined] },
	],
	names: { configfile: ['basic_auth'], compatfile: ['basic_auth', 'basicauth'] },
	usage: USAGE,
	summary: 'Asks for a name and a password (HTTP Basic authentication).',
	documentation: [
		'Each line of the block is an account: a name and the hash of its password, as printed by `svc hash-password`, or its',
		'base64. All accounts of a block use one algorithm; the default is `bcrypt`. Name and hash may come from the',
		'environment: `{env.NAME}` is read when the configuration is loaded.',
		'',
		'A request without valid credentials causes an error with status 401, which `handle_errors` can answer. The client is told',
		"the realm, by default `restricted`. For an authenticated request, `{http.auth.user.id}` is the user's name, which is also `user_id` in access",
		'logs. The field `Authorization` is passed on to upstreams; `request_header -Authorization` removes it.',
		'',
		'Passwords are verified on separate threads, and results are remembered under a keyed hash. Client addresses (IPv6',
		'by /64) take turns, so guessing passwords keeps no one else waiting. An unknown name takes as long',
		'as a known one. If too many verifications are waiting, the status is 429 for a client with many of them and 503',
		'otherwise, with `Retry-After`. Verifying a bcrypt hash of the default cost takes about a second of CPU time, an',
		'argon2id hash about a tenth of that: prefer `svc hash-password --algorithm argon2id` if many users log in.',
		'',
		'`htpasswd FILE` (in a Configfile) adds the accounts of a file with lines `user:hash`, as `htpasswd -B` writes them: bcrypt',
		'(`$2y$`, `$2a$`, `$2b$`) and argon2id hashes, in any mix. MD5-crypt, SHA-1, SHA-crypt, plain text and any other invalid line',
		'make the whole file invalid, and `svc validate` names the lines. Such hashes cannot be converted; set the passwords again.',
		'A configuration whose file is missing or invalid is not loaded. While the server runs, the file is checked for changes',
		'when somebody logs in, about once a second. If its new version is missing, empty or invalid, this is logged and the',
		'previous one stays in use. Replace the file by renaming a new one over it, so that no half-written version is read.',
		'Accounts of the block take precedence over those of the file. An account with the name `htpasswd` is written in quotes.',
		'Keep the file outside of folders that are served. It may have up to 1 MiB.',
		'',
		'```',
		'basic_auth /admin/* bcrypt "Staff only" {',
		'	alice {env.ALICE_HASH}',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'sometimes',
	asksForPasswords: true,
	order: { rank: 180 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 2, USAGE);
		const [algorithmWord, realmWord] = args as readonly (Word | undefined)[];
		let algorithm: HashAlgorithm | undefined = 'bcrypt';
		if (algorithmWord) {
			algorithm = HASH_ALGORITHMS.find(name => name === algorithmWord.text);
			if (!algorithm) {
				const message =
					cx.dialect === 'compatfile'
						? `unrecognized hash algorithm: ${algorithmWord.text}`
						: `\`${algorithmWord.text}\` is not a hash algorithm.`;
				cx.problem('error', 'auth/unknown-algorithm', algorithmWord.span, message, {
					hint: 'Write bcrypt or argon2id, then the realm.',
				});
			}
		}
		const accounts: BasicAuthAccount[] = [];
		let htpasswdWord: Word | undefined;
		const userNames = new Set<string>();
		for (const [index, accountLine] of (line.block?.lines ?? []).entries()) {
			cx.noBlock(accountLine);
			const firstWord = accountLine.words[0]!;
			if (firstWord.text === 'htpasswd' && firstWord.quote === 'none' && cx.dialect === 'configfile') {
				htpasswdWord = lowerAccountFile(accountLine, htpasswdWord, cx) ?? htpasswdWord;
				continue;
			}
			const [userWord, hashWord, extraWord] = accountLine.words as readonly [Word, Word | undefined, Word | undefined];
			const user = cx.template(userWord);
			if (user === '' || hashWord === undefined || hashWord.text === '') {
				cx.problem('error', 'auth/incomplete', userWord.span, 'username and password cannot be empty or missing', {
					hint: 'Write a name and the hash that `svc hash-password` prints.',
				});
				continue;
			}
			if (extraWord) cx.count(accountLine, accountLine.words.slice(1), 1, 1, '<user> <hash>');
			if (userNames.has(user)) {
				const message = `account ${index}: username is not unique: ${user}`;
				cx.problem('error', 'auth/user-twice', userWord.span, message);
			}
			userNames.add(user);
			const hash = cx.template(hashWord);
			const parsedHash = algorithm && !hash.includes('{') ? parsePasswordHash(algorithm, hash) : undefined;
			if (typeof parsedHash === 'string') {
				const message = `The hash of \`${user}\` cannot be used: ${parsedHash}.`;
				cx.problem('error', 'auth/bad-hash', hashWord.span, message, {
					hint:
						user === 'htpasswd'
							? 'Files of accounts can be named in a Configfile only.'
							: `Create one with \`svc hash-password --algorithm ${algorithm}\`.`,
				});
			}
			accounts.push(cx.origin({ user, hash }, accountLine.span, { user: userWord.span, hash: hashWord.span }));
		}
		if (accounts.length === 0 && !(line.block && line.block.lines.length > 0)) {
			const severity = cx.dialect === 'compatfile' ? 'warning' : 'error';
			cx.problem(severity, 'auth/no-account', line.words[0]!.span, 'There are no accounts: nobody can authenticate.', {
				hint: `Usage: ${USAGE}`,
			});
		}
		const realmField = realmWord && realmWord.text !== DEFAULT_REALM ? { realm: realmWord.text } : {};
		const algorithmField = algorithm && algorithm !== 'bcrypt' ? { algorithm } : {};
		const step: BasicAuthStep = {
			handler: 'basic_auth',
			...algorithmField,
			...realmField,
			accounts,
			...(htpasswdWord && { htpasswd: cx.filePath(htpasswdWord.text, htpasswdWord.span) }),
		};
		return cx.origin(step, line.span, htpasswdWord ? { htpasswd: htpasswdWord.span } : {});
	},
	schema: {
		properties: {
			algorithm: {
				enum: HASH_ALGORITHMS,
				default: 'bcrypt',
				description: 'Hash algorithm of the passwords; default `bcrypt`.',
			},
			realm: {
				type: 'string',
				minLength: 1,
				pattern: '^[ -~]+$',
				default: 'restricted',
				description: 'The realm that the client is asked to authenticate for; default `restricted`.',
			},
			accounts: {
				type: 'array',
				description: 'The accounts; nobody is admitted if empty.',
				items: {
					type: 'object',
					properties: {
						user: { type: 'string', minLength: 1, description: 'Name, without a colon.' },
						hash: {
							type: 'string',
							minLength: 1,
							secret: true,
							description: 'Hash of the password, verbatim or as base64; `{env.NAME}` is read at load time.',
						},
						'@id': { type: 'string' },
					},
					required: ['user', 'hash'],
					additionalProperties: false,
				},
			},
			htpasswd: {
				type: 'string',
				minLength: 1,
				description: 'Path of a file with more accounts, one `user:hash` a line; it is read again when it changes.',
			},
		},
		required: ['accounts'],
	},
	compile: compileBasicAuth,
});

/** Lowers `htpasswd <file>`. Returns the word of the path; undefined after a mistake. */
function lowerAccountFile(line: Line, earlierWord: Word | undefined, cx: LowerContext): Word | undefined {
	const args = line.words.slice(1);
	if (!cx.count(line, args, 1, 1, 'htpasswd <file>')) return undefined;
	const word = args[0]!;
	if (earlierWord) {
		cx.problem('error', 'auth/htpasswd-twice', word.span, 'A second file of accounts is named.', {
			hint: 'Join the files, or write two `basic_auth` blocks for different requests.',
		});
		return undefined;
	}
	if (word.text.includes('{') || word.text === '') {
		cx.problem(
			'error',
			'auth/htpasswd-path',
			word.span,
			'The path of a file of accounts cannot depend on a request or be empty.',
			{
				hint: 'Write a path without placeholders; `{$NAME}` takes one from the environment.',
			},
		);
		return undefined;
	}
	return word;
}

function formatBasicCredentials(user: string, password: string): string {
	return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
