/** The issuer `internal`: certificates from an internal CA. */
import type { IssuerSettings } from '../../compiler/document/tls-settings.ts';
import { type Authority, AuthorityError } from './authority.ts';
import { makePrivateKey, parsePrivateKey, privateKeyPem } from './certificate-keys.ts';
import { type IssuedCertificate, IssueError, type IssueOrder, type Issuer, issuerSetting } from './issuer.ts';

/** Default lifetime in milliseconds: 12 hours. */
const DEFAULT_LIFETIME_MS = 43_200_000;

/** Creates the issuer. `findAuthority` resolves to the CA with an ID, or to undefined while it cannot sign. */
export function internalIssuer(
	settings: IssuerSettings,
	findAuthority: (id: string) => Promise<Authority | undefined>,
): Issuer {
	const authorityId = issuerSetting<string>(settings, 'ca') ?? 'local';
	const lifetimeMs = issuerSetting<number>(settings, 'lifetime') ?? DEFAULT_LIFETIME_MS;
	const withRoot = issuerSetting<boolean>(settings, 'sign_with_root') === true;
	return {
		kind: 'internal',
		storeName: authorityId,
		isImmediate: true,
		async issue({ name, keyType, privateKey }: IssueOrder): Promise<IssuedCertificate> {
			const signer = await findAuthority(authorityId);
			if (!signer)
				throw new IssueError(
					'issuer/no-authority',
					`The internal authority \`${authorityId}\` cannot sign at present.`,
				);
			const key = (privateKey !== undefined && parsePrivateKey(privateKey)) || (await makePrivateKey(keyType));
			try {
				return { chain: signer.sign({ names: [name], key, lifetimeMs, withRoot }), privateKey: privateKeyPem(key) };
			} catch (error) {
				if (error instanceof AuthorityError) throw new IssueError('issuer/no-authority', error.message);
				throw error;
			}
		},
	};
}
