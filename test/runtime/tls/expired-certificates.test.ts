/** A thread chooses an expired certificate only if all certificates that cover the name have expired. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CertificateTable } from '../../../runtime/tls/certificate-table.ts';
import { TestAuthority } from '../../certificates.ts';

const expired = suite('expired certificates');
const authority = await TestAuthority.make();
const client = { cipherSuites: ['1301'], signatureSchemes: ['0403', '0804'] };

/** Adds a certificate that expires in a number of seconds. */
async function add(table: CertificateTable, id: string, name: string, seconds: number): Promise<void> {
	const { certificate, key } = await authority.issue({ names: [name], until: seconds });
	table.set({ id, names: [name], chain: certificate, key });
}

expired('another certificate for the name is chosen, even from files', async () => {
	const table = new CertificateTable();
	await add(table, 'acme/a.test', 'a.test', -10);
	await add(table, 'file a', 'a.test', 3600);
	assert.is(table.find('a.test', client)?.published.id, 'file a');
	await add(table, 'acme/a.test', 'a.test', 3600);
	assert.is(table.find('a.test', client)?.published.id, 'acme/a.test');
});

expired('the certificate of a wildcard is chosen', async () => {
	const table = new CertificateTable();
	await add(table, 'acme/a.b.test', 'a.b.test', -10);
	await add(table, 'acme/*.b.test', '*.b.test', -10);
	assert.is(table.find('a.b.test', client)?.published.id, 'acme/a.b.test');
	await add(table, 'acme/*.*.test', '*.*.test', 3600);
	assert.is(table.find('a.b.test', client)?.published.id, 'acme/*.*.test');
	assert.is(table.find('b.b.test', client)?.published.id, 'acme/*.*.test');
});

expired('if all have expired, the one that would be chosen otherwise is chosen', async () => {
	const table = new CertificateTable();
	await add(table, 'acme/a.test', 'a.test', -10);
	await add(table, 'file a', 'a.test', -10);
	assert.is(table.find('a.test', client)?.published.id, 'acme/a.test');
});

expired.run();
