/** Weak keys are reported when a configuration is compiled, not at the first handshake. */
import { generateKeyPairSync } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keyWeakness } from '../../../../compiler/codegen/context/key-strength.ts';
import { checkCertificatePair } from '../../../../compiler/codegen/plan/certificate-check.ts';
import {
	MaterialError,
	readTlsMaterial,
} from '../../../../compiler/modules/directives/reverse-proxy/transports/tls-material.ts';
import { TestAuthority } from '../../../certificates.ts';

const strength = suite('key strength');

const authority = await TestAuthority.make();

strength('the required size depends on the kind of key', () => {
	const curve = (namedCurve: string) => keyWeakness(generateKeyPairSync('ec', { namedCurve }).privateKey);
	assert.is(
		keyWeakness(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey),
		'has 1024 bits but at least 2048 are required',
	);
	assert.is(keyWeakness(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey), undefined);
	assert.is(curve('secp192k1'), 'has 192 bits but at least 224 are required');
	for (const good of ['prime256v1', 'secp384r1', 'secp521r1', 'secp224r1']) assert.is(curve(good), undefined, good);
	assert.is(keyWeakness(generateKeyPairSync('ed25519').privateKey), undefined);
});

strength('a weak key in a certificate file is an error in the configuration', async () => {
	const { certificate, key } = await authority.issue({ names: ['a.test'], bits: 1024 });
	const outcome = checkCertificatePair(Buffer.from(certificate), Buffer.from(key), 'a.pem', 'a.key');
	assert.is('code' in outcome && outcome.code, 'tls/weak-key');
	assert.match(
		'message' in outcome ? outcome.message : '',
		'The key in `a.key` has 1024 bits but at least 2048 are required.',
	);
});

strength('a weak key in a client certificate for upstreams is an error too', async () => {
	const read = async (bits: number): Promise<string> => {
		const pair = await authority.issue({ names: ['client.test'], bits });
		const files: { [file: string]: string } = { 'c.pem': pair.certificate, 'c.key': pair.key };
		try {
			const material = readTlsMaterial({ client_certificate: { certificate: 'c.pem', key: 'c.key' } }, file =>
				Buffer.from(files[file]!),
			);
			return material.certificate === pair.certificate ? 'taken' : 'lost';
		} catch (error) {
			return error instanceof MaterialError ? `${error.code} ${error.message}` : String(error);
		}
	};
	assert.is(await read(1024), 'tls/weak-key The key c.key has 1024 bits but at least 2048 are required.');
	assert.is(await read(2048), 'taken');
});

strength.run();
