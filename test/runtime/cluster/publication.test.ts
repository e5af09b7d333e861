/** Publications: what is refused because it was altered, encrypted with another key, or not signed by a trusted publisher. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	openPublication,
	type Publication,
	PublicationRefused,
	parseSigningKey,
	publisherOf,
	sealPublication,
} from '../../../runtime/cluster/publication.ts';
import { SealedValues } from '../../../runtime/cluster/sealed-values.ts';

const publications = suite('publications');

const [oldKey, newKey] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
const sealedValues = new SealedValues([newKey, oldKey]);
const publication: Publication = {
	number: 7,
	publishedAt: 1_795_860_000_000,
	publishedBy: 'ada@workstation',
	fileName: 'Configfile',
	text: 'http://:80 {\n\trespond "canary of the text"\n}\n',
	document: '{"sites":[]}',
};

function newSigningKey() {
	return generateKeyPairSync('ed25519').privateKey;
}

/** Returns the code and the message with which a publication is refused. */
function refusalOf(action: () => unknown): [string, string] {
	try {
		action();
	} catch (error) {
		if (error instanceof PublicationRefused) return [error.code, error.message];
		throw error;
	}
	throw new Error('not refused');
}

publications('survive sealing, and contain no readable text', () => {
	const sealed = sealPublication(sealedValues, publication, undefined);
	assert.not.ok(sealed.includes('canary'));
	assert.equal(openPublication(sealedValues, 7, sealed, undefined), publication);
	// A machine with both keys can open what was sealed with the old key. A machine with only the old key cannot open `sealed`.
	const old = sealPublication(new SealedValues([oldKey]), publication, undefined);
	assert.equal(openPublication(sealedValues, 7, old, undefined), publication);
	assert.is(
		refusalOf(() => openPublication(new SealedValues([oldKey]), 7, sealed, undefined))[0],
		'publication/altered',
	);
});

publications('are refused if a single bit was changed anywhere, or under another number', () => {
	const sealed = sealPublication(sealedValues, publication, undefined);
	for (let i = 0; i < sealed.length; i++) {
		const altered = Buffer.from(sealed);
		altered[i]! ^= 1;
		const [code, message] = refusalOf(() => openPublication(sealedValues, 7, altered, undefined));
		assert.is(code, 'publication/altered');
		assert.is(message, 'Publication 7 has been altered, or was encrypted with another `key` of `cluster`.');
	}
	assert.is(refusalOf(() => openPublication(sealedValues, 8, sealed, undefined))[0], 'publication/altered');
	assert.is(refusalOf(() => openPublication(sealedValues, 7, Buffer.alloc(0), undefined))[0], 'publication/altered');
});

publications('need the signature of a trusted publisher, if the machine names any', () => {
	const [trusted, other, stranger] = [newSigningKey(), newSigningKey(), newSigningKey()];
	const publishers = [publisherOf(other), publisherOf(trusted)];
	const signed = sealPublication(sealedValues, publication, trusted);
	assert.equal(openPublication(sealedValues, 7, signed, publishers), publication);
	// Without `publisher`, a signature is not required, but does no harm.
	assert.equal(openPublication(sealedValues, 7, signed, undefined), publication);
	const unsigned = sealPublication(sealedValues, publication, undefined);
	assert.equal(
		refusalOf(() => openPublication(sealedValues, 7, unsigned, publishers)),
		['publication/unsigned', 'Publication 7 is not signed.'],
	);
	const wrong = sealPublication(sealedValues, publication, stranger);
	assert.equal(
		refusalOf(() => openPublication(sealedValues, 7, wrong, publishers)),
		['publication/wrong-signature', 'Publication 7 is not signed by a `publisher` of `cluster`.'],
	);
});

publications('are refused if a holder of the key changes what a publisher has signed', () => {
	const signingKey = newSigningKey();
	const signed = sealPublication(sealedValues, publication, signingKey);
	const plaintext = sealedValues.open('publication 7', signed)!.toString();
	const forged = sealedValues.seal('publication 7', Buffer.from(plaintext.replace('ada@', 'eve@')));
	const [code] = refusalOf(() => openPublication(sealedValues, 7, forged, [publisherOf(signingKey)]));
	assert.is(code, 'publication/wrong-signature');
	// An earlier publication of the same publisher cannot be passed off as a later one.
	const renumbered = sealedValues.seal('publication 8', Buffer.from(plaintext));
	assert.is(
		refusalOf(() => openPublication(sealedValues, 8, renumbered, [publisherOf(signingKey)]))[0],
		'publication/altered',
	);
});

publications('are signed with an Ed25519 key only', () => {
	const pem = newSigningKey().export({ format: 'pem', type: 'pkcs8' }).toString();
	assert.is(parseSigningKey(pem)?.asymmetricKeyType, 'ed25519');
	const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
	assert.is(parseSigningKey(rsa.export({ format: 'pem', type: 'pkcs8' }).toString()), undefined);
	assert.is(parseSigningKey('not a key'), undefined);
});

publications.run();
