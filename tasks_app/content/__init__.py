"""Big parts of messages and artifacts: kept in files instead of in rows, and put back when somebody reads them.

`keeping` stores them before the journal writes the body that names them, `restoring` puts them back or gives signed
URLs, `removal` deletes them. In a body, `placeholder` stands where the content was.
"""
