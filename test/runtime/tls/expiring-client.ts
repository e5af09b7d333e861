/** A client certificate that is about to expire, for tests of what happens then. */
import type { TestAuthority, TestCertificate } from '../../certificates.ts';

/** A client certificate, and the answer to a request that was made with it before it expired. */
interface ExpiringClient<Answer> {
	readonly client: TestCertificate;
	readonly answer: Answer;
	/** Milliseconds since 1970. */
	readonly expiresAt: number;
}

/**
 * Issues a certificate that expires soon and makes a request with it. On a busy machine the request may take longer than that, so
 * it is repeated with a certificate that is valid for longer.
 */
export async function answerBeforeExpiry<Answer>(
	authority: TestAuthority,
	request: (client: TestCertificate) => Promise<Answer>,
): Promise<ExpiringClient<Answer>> {
	for (let seconds = 3; ; seconds *= 2) {
		const expiresAt = Date.now() + seconds * 1000;
		const client = await authority.issue({ subject: 'CN=Short', until: seconds });
		try {
			return { client, answer: await request(client), expiresAt };
		} catch (error) {
			if (Date.now() < expiresAt - 1000 || seconds > 60) throw error;
		}
	}
}
