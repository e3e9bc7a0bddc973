/** A certificate that nobody trusts but who is told to, made by openssl. */

import assert from "node:assert/strict";

/** Whether there is an openssl to make one. */
export const hasOpenssl: boolean = await new Deno.Command("openssl", { args: ["version"] })
  .output().then(({ success }) => success, () => false);

/** Makes a key and a certificate for the name localhost in `directory`; their paths. */
export async function makeCertificate(directory: string): Promise<{ key: string; cert: string }> {
  const [key, cert] = [`${directory}/key.pem`, `${directory}/cert.pem`];
  const line =
    `req -x509 -newkey rsa:2048 -nodes -keyout ${key} -out ${cert} -days 2 -subj /CN=localhost ` +
    "-addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
  const made = await new Deno.Command("openssl", { args: line.split(" "), stderr: "null" })
    .output();
  assert.ok(made.success);
  return { key, cert };
}
